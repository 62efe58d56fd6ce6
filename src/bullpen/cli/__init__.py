"""The command line: one file per verb, on top of the client."""

import sys


def main() -> None:
    """The `bullpen` command."""
    from .app import run  # noqa: PLC0415  (a mistake in it must not keep this package from importing)

    sys.exit(run(sys.argv[1:]))
