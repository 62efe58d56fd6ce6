"""Identify a process beyond its pid, which is the same in every sandbox."""

import os


def process_identity() -> str:
    """Return a text that only this process has."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return f"{os.readlink('/proc/self')} {fields[19].decode()} {os.readlink('/proc/self/ns/pid')}"
