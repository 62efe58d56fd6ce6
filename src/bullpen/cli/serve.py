"""`bullpen serve`: run the server in the foreground."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from ..config import OPTIONS, load
from ..domain.errors import Invalid
from .verb import new_app

app = new_app()

_HELP = {option.name: f"{option.help[:1].upper()}{option.help[1:]}." for option in OPTIONS}


def _setting(name: str, metavar: str) -> Any:
    """Return the option for a setting; the module `config` checks its value."""
    return typer.Option(metavar=metavar, help=_HELP[name])


@app.command()
def serve(
    *,
    host: Annotated[str | None, _setting("host", "ADDRESS")] = None,
    port: Annotated[str | None, _setting("port", "PORT")] = None,
    home: Annotated[str | None, _setting("home", "DIRECTORY")] = None,
    workspace_root: Annotated[str | None, _setting("workspace_root", "DIRECTORY")] = None,
    database_url: Annotated[str | None, _setting("database_url", "URL")] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with the owner's token.")
    ] = None,
    idle_timeout: Annotated[str | None, _setting("idle_timeout", "MINUTES")] = None,
    max_sessions: Annotated[str | None, _setting("max_sessions", "NUMBER")] = None,
    allowed_hosts: Annotated[str | None, _setting("allowed_hosts", "NAMES")] = None,
    trusted_proxies: Annotated[str | None, _setting("trusted_proxies", "ADDRESSES")] = None,
    tls_certificate: Annotated[str | None, _setting("tls_certificate", "FILE")] = None,
    tls_key: Annotated[str | None, _setting("tls_key", "FILE")] = None,
    allow_plain_http_beyond_loopback: Annotated[
        bool,
        typer.Option("--allow-plain-http-beyond-loopback", help=_HELP["allow_plain_http_beyond_loopback"]),
    ] = False,
    log_level: Annotated[str | None, _setting("log_level", "LEVEL")] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the link, but open no browser.")] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over", help="Use the database even if another server uses it or it lost commits."
        ),
    ] = False,
) -> int:
    """Run the server in the foreground. Ctrl-C ends it; agents and terminals go on.

    Every option can also be set by an environment variable or in config.toml: see bullpen config.

    \b
    Examples:
      bullpen serve
      bullpen serve --no-open --port 8000
      bullpen serve --host 0.0.0.0 --tls-certificate site.pem --tls-key site.key
    """
    flags: dict[str, Any] = {
        "host": host,
        "port": port,
        "home": home,
        "workspace_root": workspace_root,
        "database_url": database_url,
        "token": _read_token(token_file),
        "idle_timeout": idle_timeout,
        "max_sessions": max_sessions,
        "allowed_hosts": allowed_hosts,
        "trusted_proxies": trusted_proxies,
        "tls_certificate": tls_certificate,
        "tls_key": tls_key,
        "allow_plain_http_beyond_loopback": allow_plain_http_beyond_loopback or None,
        "log_level": log_level,
    }
    settings = load(flags)
    gc.disable()  # until the server is ready: starting creates no garbage, and collecting takes time
    # structlog would import rich for colours, which the server's log does not use.
    with _blocked_import("rich"):
        main = import_module("bullpen.main")  # by name: main is a layer above the command line
    code: int = main.serve(settings, open_browser=not no_open, take_over=take_over)
    return code


@contextmanager
def _blocked_import(package: str) -> Iterator[None]:
    """Let imports of a package fail, unless it is imported already, so that optional uses are skipped."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[package]


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
