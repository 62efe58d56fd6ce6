"""Provide the command `bullpen`: one module per verb, built on the client."""

import sys


def main() -> None:
    """Run the command `bullpen` and exit with its exit code."""
    from .app import run  # noqa: PLC0415  (an error in it must not break the import of this package)

    sys.exit(run(sys.argv[1:]))
