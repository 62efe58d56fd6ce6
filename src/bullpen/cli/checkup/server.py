"""Check that the server answers, accepts the token and has this version, or that its port is free."""

import errno
import socket

from ... import __version__
from ...client import Agent, Client, ServerNotRunning
from ...config import Config
from ...domain.errors import BullpenError, Unauthorized
from ..text import describe_limit
from .finding import Finding, fail, ok, warn


async def check_server(client: Client, remote_url: str) -> tuple[Finding, bool]:
    """Return the finding about the server, and whether a server runs.

    `remote_url` is the value of BULLPEN_URL, empty for the server of this machine.
    """
    try:
        health = await client.health()
    except ServerNotRunning as error:
        if remote_url:
            return fail(
                "server", f"nothing answers at {remote_url}", "start it there, or unset BULLPEN_URL"
            ), False
        return warn("server", str(error).partition(";")[0], "start it with: bullpen serve"), False
    except Unauthorized as error:
        return fail("server", str(error), "set BULLPEN_TOKEN to one of its tokens"), True
    except BullpenError as error:
        return fail("server", str(error), "see logs/server.log in its data directory"), True
    if health.away:
        problem = f"{health.version}, but cannot reach its {' and '.join(health.away)}"
        return fail("server", problem, "start it again; the server then goes on by itself"), True
    return await _check_answers(client, health.status, health.version or "unknown"), True


async def _check_answers(client: Client, status: str, version: str) -> Finding:
    """Check the token, the disk and the version of a server that runs."""
    try:
        await client.repositories()  # the cheapest request that needs a token
    except Unauthorized:
        advice = "unset BULLPEN_TOKEN, or set it to a token of the server"
        return fail("server", "it does not accept this token", advice)
    except BullpenError as error:
        return fail(
            "server", f"{version}, but it answers: {error}", "see logs/server.log in its data directory"
        )
    if status == "full":
        return fail(
            "server", f"{version}, but its disk is full", "free some space; it then goes on by itself"
        )
    if status != "ok":
        return warn("server", f"{version}, {status}", "wait a moment and look again")
    if version != __version__:
        advice = "restart it; terminals and agents go on"
        return warn("server", f"{version} runs, {__version__} is installed", advice)
    return ok("server", f"{version}, answers")


async def check_limits(client: Client) -> list[Finding]:
    """Report the limits of sandboxed runs; nothing if the server refuses to list them or is older."""
    try:
        limits = (await client.sandbox()).limits
    except BullpenError:
        return []
    return [ok("limits", ", ".join(map(describe_limit, limits)))] if limits else []


async def fetch_agents(client: Client) -> list[Agent] | None:
    """Return the agents of a running server; None if it refuses to list them."""
    try:
        return await client.agents()
    except BullpenError:
        return None


def check_port(settings: Config) -> Finding:
    """Check that a server could listen on its port, while no server runs."""
    address = f"{settings.host}:{settings.port}"
    if settings.port == 0:
        return ok("port", "any free port")
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind((settings.host.strip("[]"), settings.port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return fail(
                    "port", f"{address} is used by another program", "set BULLPEN_PORT to another one"
                )
            return fail(
                "port", f"{address} cannot be used: {error.strerror}", "set BULLPEN_HOST or BULLPEN_PORT"
            )
    return ok("port", f"{address} is free")
