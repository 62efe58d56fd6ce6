"""Whether the server answers, takes our token, and is the version we are; whether its port is free."""

import errno
import socket

from ... import __version__
from ...client import Agent, Client, ServerNotRunning
from ...config import Config
from ...domain.errors import BullpenError, Unauthorized
from .finding import Finding, fail, ok, warn


async def check_server(client: Client, elsewhere: str) -> tuple[Finding, bool]:
    """What there is to say, and whether one runs at all; `elsewhere`: the address of one that is not ours."""
    try:
        health = await client.health()
    except ServerNotRunning as error:
        if elsewhere:
            return fail(
                "server", f"nothing answers at {elsewhere}", "start it there, or unset BULLPEN_URL"
            ), False
        return warn("server", str(error).partition(";")[0], "start it with: bullpen serve"), False
    except Unauthorized as error:
        return fail("server", str(error), "set BULLPEN_TOKEN to one of its tokens"), True
    except BullpenError as error:
        return fail("server", str(error), "see what it says in logs/server.log in its data directory"), True
    if health.away:
        absent = f"{health.version}, but cannot reach its {' and '.join(health.away)}"
        return fail("server", absent, "start it again; the server goes on by itself"), True
    return await _look(client, health.status, health.version or "unknown"), True


async def _look(client: Client, status: str, version: str) -> Finding:
    try:
        await client.repositories()  # the cheapest thing that needs a token
    except Unauthorized:
        advice = "unset BULLPEN_TOKEN, or set it to one of the server's"
        return fail("server", "it does not know our token", advice)
    except BullpenError as error:
        return fail("server", f"{version}, but it says: {error}", "see logs/server.log in its data directory")
    if status == "full":
        return fail("server", f"{version}, but its disk is full", "make room; it goes on by itself")
    if status != "ok":
        return warn("server", f"{version}, {status}", "wait a moment and look again")
    if version != __version__:
        advice = "restart it; terminals and agents go on"
        return warn("server", f"{version} runs, {__version__} is installed", advice)
    return ok("server", f"{version}, answers")


async def ask_for_agents(client: Client) -> list[Agent] | None:
    """Those a running server has, with what it finds of them; None when it does not tell us."""
    try:
        return await client.agents()
    except BullpenError:
        return None


def check_port(settings: Config) -> Finding:
    """Only where no server of ours runs: whether the next one could listen."""
    place = f"{settings.host}:{settings.port}"
    if settings.port == 0:
        return ok("port", "any free one")
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind((settings.host.strip("[]"), settings.port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return fail("port", f"{place} is taken by another program", "set BULLPEN_PORT to another one")
            return fail(
                "port", f"{place} cannot be used: {error.strerror}", "set BULLPEN_HOST or BULLPEN_PORT"
            )
    return ok("port", f"{place} is free")
