"""`bullpen completion`: print the script with which a shell completes commands of `bullpen`."""

import click

from .values import Choice


@click.command()
@click.argument("shell", metavar="SHELL", type=Choice(["bash", "zsh", "fish"]), help="bash, zsh or fish.")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a completion script for your shell.

    \b
    bash:  bullpen completion bash >> ~/.bashrc
    zsh:   bullpen completion zsh > "${fpath[1]}/_bullpen"
    fish:  bullpen completion fish > ~/.config/fish/completions/bullpen.fish
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    make_completion = get_completion_class(shell)
    assert make_completion is not None
    print(make_completion(context.find_root().command, {}, "bullpen", "_BULLPEN_COMPLETE").source())
