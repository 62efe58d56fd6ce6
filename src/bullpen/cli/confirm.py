"""Ask the user a yes-or-no question on the terminal."""

import sys


def confirm(question: str, *, default: bool) -> bool:
    """Return the user's answer; `default` for an empty line, and False if there is no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"{question} [{'Y/n' if default else 'y/N'}] ", end="", flush=True, file=sys.stderr)
    answer = sys.stdin.readline().lower()
    return answer in ("y\n", "yes\n") or (default and answer == "\n")
