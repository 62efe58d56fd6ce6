"""`bullpen serve`: run the server in the foreground."""

import gc
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ..config import OPTIONS, load
from ..domain.errors import Invalid

_HELP = {option.name: f"{option.help[:1].upper()}{option.help[1:]}." for option in OPTIONS}


def _setting(name: str, metavar: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option for a setting; the module `config` checks its value."""
    return click.option(f"--{name.replace('_', '-')}", name, metavar=metavar, help=_HELP[name])


@click.command()
@_setting("host", "ADDRESS")
@_setting("port", "PORT")
@_setting("home", "DIRECTORY")
@_setting("workspace_root", "DIRECTORY")
@_setting("database_url", "URL")
@click.option(
    "--token-file", type=click.Path(path_type=Path), metavar="FILE", help="A file with the owner's token."
)
@_setting("idle_timeout", "MINUTES")
@_setting("max_sessions", "NUMBER")
@_setting("allowed_hosts", "NAMES")
@_setting("trusted_proxies", "ADDRESSES")
@_setting("tls_certificate", "FILE")
@_setting("tls_key", "FILE")
@click.option(
    "--allow-plain-http-beyond-loopback",
    is_flag=True,
    default=None,
    help=_HELP["allow_plain_http_beyond_loopback"],
)
@_setting("log_level", "LEVEL")
@click.option("--no-open", is_flag=True, help="Print the link, but open no browser.")
@click.option(
    "--take-over", is_flag=True, help="Use the database even if another server uses it or it lost commits."
)
def serve(token_file: Path | None, no_open: bool, take_over: bool, **flags: Any) -> int:
    """Run the server in the foreground. Ctrl-C ends it; agents and terminals go on.

    Every option can also be set by an environment variable or in config.toml: see bullpen config.

    \b
    Examples:
      bullpen serve
      bullpen serve --no-open --port 8000
      bullpen serve --host 0.0.0.0 --tls-certificate site.pem --tls-key site.key
    """
    settings = load(flags | {"token": _read_token(token_file)})
    gc.disable()  # until the server is ready: starting creates no garbage, and collecting takes time
    main = import_module("bullpen.main")  # by name: main is a layer above the command line
    code: int = main.serve(settings, open_browser=not no_open, take_over=take_over)
    return code


def _read_token(path: Path | None) -> str | None:
    """Return the token in a file; raise Invalid if it cannot be read or is empty."""
    if path is None:
        return None
    try:
        token = path.read_text().strip()
    except OSError as error:
        raise Invalid(f"--token-file cannot be read: {error.strerror}: {path}") from None
    if not token:
        raise Invalid(f"--token-file is empty: {path}")
    return token
