"""How large a number in a request may be: no page can count further, and a database can still add to it."""

LARGEST = (1 << 53) - 1
