"""Decide in which directories sessions may run, and which files they can read and write."""
