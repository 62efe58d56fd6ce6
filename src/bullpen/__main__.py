"""Run the command line: `python -m bullpen` is the same as `bullpen`."""

from .cli import main

main()
