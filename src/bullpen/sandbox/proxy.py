"""The proxy of sealed runs: it connects to allowed hosts by name, and reports every other host."""

import asyncio
import ipaddress
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import structlog
from msgspec import Struct

from ..domain.grants import PORTS, host_target

log = structlog.get_logger()

SOCKET_NAME = "proxy.sock"
MAX_HEAD_BYTES = 64 << 10
MAX_HOST_LENGTH = 253
MAX_CONNECTIONS = 64  # of one run at a time
HEAD_SECONDS = 30.0
CONNECT_SECONDS = 30.0
READ_BYTES = 1 << 16

OnRefusal = Callable[["ProxyRequest", bool], Awaitable[None]]  # with whether a user can allow the host
Allowed = Callable[[], Collection[str]]


class ProxyRequest(Struct, frozen=True):
    """The first lines of a request to the proxy."""

    program: str
    host: str
    port: int
    is_tunnel: bool
    head: bytes  # what the host is sent first


class BadProxyRequest(Exception):
    """The client did not send a request to a proxy."""


def allows(allowed: Collection[str], host: str, port: int) -> bool:
    """Return whether a host is on the list, as `name`, `.name` with all subdomains, or with a port."""
    host = host.lower().rstrip(".")
    for each in allowed:
        name, _, named_port = each.lower().partition(":")
        is_host = host == name or (name.startswith(".") and (host.endswith(name) or host == name[1:]))
        if is_host and (port == int(named_port) if named_port.isdecimal() else port in PORTS):
            return True
    return False


def is_local(address: str) -> bool:
    """Return whether an address belongs to this machine or its link: a name must not lead there."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
        found = found.ipv4_mapped
    local = found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast
    return local or _is_own(str(found), socket.AF_INET if found.version == 4 else socket.AF_INET6)


def _is_own(address: str, family: socket.AddressFamily) -> bool:
    """Return whether an interface of this machine has the address: it is then its own way to itself."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, PORTS[0]))  # it sends nothing
        except OSError:
            return False
        return bool(probe.getsockname()[0] == address)


def parse_request(head: bytes) -> ProxyRequest:
    """Return the request in these lines; the first one names the program. Raise BadProxyRequest."""
    program, _, rest = head.partition(b"\n")
    first_line, _, headers = rest.partition(b"\r\n")
    try:
        method, target, version = first_line.decode("ascii").split(" ")
        is_tunnel = method == "CONNECT"
        url = urlsplit(f"//{target}" if is_tunnel else target)
        host, port = url.hostname or "", url.port or 80
    except ValueError:
        raise BadProxyRequest from None
    if (
        not host
        or len(host) > MAX_HOST_LENGTH
        or not host.isprintable()
        or not (is_tunnel or url.scheme == "http")
    ):
        raise BadProxyRequest
    path = f"{url.path or '/'}{f'?{url.query}' if url.query else ''}"
    dropped = (b"proxy-", b"connection:")
    kept = [each for each in headers.split(b"\r\n") if not each.lower().startswith(dropped)]
    line = f"{method} {path} {version}\r\nConnection: close\r\n"
    first = b"" if is_tunnel else line.encode() + b"\r\n".join(kept)
    name = program.decode("utf-8", "replace")
    return ProxyRequest("".join(filter(str.isprintable, name))[:64], host, port, is_tunnel, first)


class SandboxProxy:
    """The proxy of one run, on a socket in a directory that the run sees."""

    def __init__(self, allowed: Allowed, on_refusal: OnRefusal) -> None:
        self._allowed = allowed
        self._on_refusal = on_refusal
        self._free = asyncio.Semaphore(MAX_CONNECTIONS)

    @asynccontextmanager
    async def listen(self, directory: Path) -> AsyncIterator[None]:
        """Serve connections for the duration of the block; each server process makes the socket again."""
        listening = await asyncio.to_thread(_bind, directory)
        server = await asyncio.start_unix_server(self._serve, sock=listening, limit=MAX_HEAD_BYTES)
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of a program."""
        try:
            async with self._free:
                await self._relay(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            log.debug("a connection of a sealed run ended", reason=str(error))
        except BadProxyRequest:
            with suppress(OSError):
                await _answer(writer, "400 Bad Request", "this is a proxy for HTTP and CONNECT")
        finally:
            writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect to the host that the program names, if it is allowed, and copy both ways."""
        async with asyncio.timeout(HEAD_SECONDS):
            request = parse_request(await reader.readuntil(b"\r\n\r\n"))
        if not allows(self._allowed(), request.host, request.port):
            await self._refuse(writer, request)
            return
        host = await self._connect(request)
        if host is None:
            await self._refuse(writer, request, leads_here=True)
            return
        host_reader, host_writer = host
        try:
            if request.is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            host_writer.write(request.head)
            async with asyncio.TaskGroup() as copies:
                copies.create_task(_copy(reader, host_writer))
                copies.create_task(_copy(host_reader, writer))
        finally:
            host_writer.close()

    async def _connect(
        self, request: ProxyRequest
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Connect to a host by its address, so that it is not resolved twice; None if it is local.

        An address of this machine must itself be on the list.
        """
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_SECONDS):
            found = await loop.getaddrinfo(request.host, request.port, type=socket.SOCK_STREAM)
            addresses = [str(each[4][0]) for each in found]
            usable = [each for each in addresses if each == request.host or not is_local(each)]
            return await asyncio.open_connection(usable[0], request.port) if usable else None

    async def _refuse(
        self, writer: asyncio.StreamWriter, request: ProxyRequest, leads_here: bool = False
    ) -> None:
        """Answer why a host is refused and how to allow it, and report the refusal."""
        target = host_target(request.host, request.port)
        advice = f"the user can allow it with: bullpen sandbox allow {target}"
        why = "leads to this machine" if leads_here else f"is not allowed by the sandbox; {advice}"
        await _answer(writer, "403 Forbidden", f"{request.host}:{request.port} {why}")
        await self._on_refusal(request, not leads_here)


def _bind(directory: Path) -> socket.socket:
    """Return a new socket in the directory, in place of that of an earlier server."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    (directory / SOCKET_NAME).unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    opened = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        listening.bind(f"/proc/self/fd/{opened}/{SOCKET_NAME}")  # the path may be too long for an address
    finally:
        os.close(opened)
    return listening


async def _answer(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    """Send a short answer and close the connection."""
    body = f"{text}\n".encode()
    headers = f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
    writer.write(f"HTTP/1.1 {status}\r\n{headers}\r\n\r\n".encode() + body)
    await writer.drain()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy everything that arrives, and then its end."""
    with suppress(OSError):
        while data := await reader.read(READ_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
