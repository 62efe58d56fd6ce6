"""`python -m bullpen` is `bullpen`."""

from .cli import main

main()
