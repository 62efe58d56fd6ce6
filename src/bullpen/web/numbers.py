"""The largest integer that a request may contain: exact in JavaScript, and a database can add to it."""

MAX_SAFE_INTEGER = (1 << 53) - 1
