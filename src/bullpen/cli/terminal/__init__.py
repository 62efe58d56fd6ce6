"""A person's own terminal, lent to a program elsewhere."""
