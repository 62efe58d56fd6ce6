"""`bullpen completion`: print the script with which a shell completes commands of `bullpen`."""

from enum import StrEnum
from typing import Annotated

import typer

from .verb import new_app

app = new_app()


class Shell(StrEnum):
    """A shell for which a completion script exists."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(help="Your shell.")]) -> None:
    """Print a completion script for your shell.

    \b
    bash:  bullpen completion bash >> ~/.bashrc
    zsh:   bullpen completion zsh > "${fpath[1]}/_bullpen"
    fish:  bullpen completion fish > ~/.config/fish/completions/bullpen.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # noqa: PLC0415

    print(get_completion_script(prog_name="bullpen", complete_var="_BULLPEN_COMPLETE", shell=shell.value))
