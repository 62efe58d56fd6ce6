"""Identify a process beyond its pid, which is the same in every sandbox."""

from pathlib import Path


def process_identity() -> str:
    """Return a text that only this process has."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    namespace = Path("/proc/self/ns/pid").readlink()
    return f"{Path('/proc/self').readlink()} {fields[19].decode()} {namespace}"
