"""Wiring: one server, from its settings to its last request."""

import asyncio
import os
import resource
import signal
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import structlog
import uvicorn

from . import __version__, home, logs
from .config import Config
from .domain.errors import Invalid
from .sessions.presence import Presence
from .sessions.sessions import Sessions
from .sessions.startup import take_up
from .sessions.tasks import background
from .store.database import Database
from .store.events import EventStore
from .store.records import Records
from .web import app
from .web.auth import Credentials
from .web.context import Context
from .web.hosts import Names, is_loopback
from .web.http import HttpProtocol
from .workers.children import Children
from .workers.screens import Screens
from .workers.workshop import Workshop

log = structlog.get_logger()

LARGEST_FRAME = 16 << 20
GOODBYE_SECONDS = 3


def serve(config: Config, open_browser: bool) -> int:
    """Runs the server until a signal; returns the exit code."""
    check_listening(config)
    os.umask(0o077)
    with home.owned(config.home):
        logs.configure(config.log_level, config.home / "logs")
        _raise_limit()
        with asyncio.Runner(loop_factory=_loop) as runner:
            runner.run(_serve(config, open_browser))
    return 0


def check_listening(config: Config) -> None:
    """Refuses to listen where others could read along (S-04)."""
    if bool(config.tls_certificate) != bool(config.tls_key):
        raise Invalid("TLS needs both a certificate and a key")
    if is_loopback(config.host) or config.tls_certificate or config.allow_plain_http_beyond_loopback:
        return
    raise Invalid(
        f"listening on {config.host} without TLS lets anyone on the way read and type; "
        "give --tls-certificate and --tls-key, or --allow-plain-http-beyond-loopback"
    )


async def _serve(config: Config, open_browser: bool) -> None:
    with _listening(config) as listener:
        port = listener.getsockname()[1]
        shown = _shown(config.host)
        names = Names(config.scheme, shown, port, config.allowed_hosts)
        url = f"{config.scheme}://{_in_url(shown)}:{port}"
        async with _house(config, url) as context:
            server = _Server(_uvicorn(config, app.build(context, names)))
            _stop_on_signals(server)
            await asyncio.gather(server.serve(sockets=[listener]), _get_ready(context, open_browser))


@asynccontextmanager
async def _house(config: Config, url: str) -> AsyncIterator[Context]:
    """Everything that lives as long as the server, opened in order and closed in reverse."""
    token = home.owner_token(config.home, config.token)
    async with (
        Database.open(config.database_url) as database,
        Children.open(config.home) as children,
        Screens.open(config.home / "screens") as screens,
        background() as tasks,
    ):
        records = Records(database)
        credentials = Credentials(token, records)
        await credentials.load()
        sessions = Sessions(EventStore(database), Workshop(config, children, screens), tasks)
        yield Context(config, sessions, records, credentials, Presence(tasks), url)


async def _get_ready(context: Context, open_browser: bool) -> None:
    """Adopts what was left running; only then are we healthy."""
    await take_up(context.sessions, context.records)
    home.write_address(context.config.home, context.url)
    url = f"{context.url}/#code={context.credentials.new_code()}"
    sys.stdout.write(f"Bullpen {__version__} is at {url}\n")
    sys.stdout.flush()
    log.info("ready", url=context.url, pid=os.getpid())
    if open_browser and "SSH_CONNECTION" not in os.environ:
        await asyncio.to_thread(webbrowser.open, url)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, which would raise the signal again before we have closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _stop_on_signals(server: uvicorn.Server) -> None:
    def stop() -> None:
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)


def _uvicorn(config: Config, application: object) -> uvicorn.Config:
    return uvicorn.Config(
        application,  # type: ignore[arg-type]
        http=HttpProtocol,
        ws="websockets-sansio",
        ws_max_size=LARGEST_FRAME,
        ws_per_message_deflate=False,
        ws_ping_interval=20,
        ws_ping_timeout=60,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(config.trusted_proxies),
        forwarded_allow_ips=list(config.trusted_proxies),
        ssl_certfile=config.tls_certificate,
        ssl_keyfile=config.tls_key,
        timeout_graceful_shutdown=GOODBYE_SECONDS,
    )


@contextmanager
def _listening(config: Config) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((config.host.strip("[]"), config.port))
        except OSError as error:
            raise Invalid(
                f"cannot listen on {config.host}:{config.port}: {error.strerror}; try another --port"
            ) from None
        listener.listen(1024)
        listener.setblocking(False)
        yield listener


def _shown(host: str) -> str:
    """The name others reach us by: every address is none."""
    return socket.gethostname() if host in ("0.0.0.0", "::") else host


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _raise_limit() -> None:
    """Every terminal and every viewer is a file descriptor."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _loop() -> asyncio.AbstractEventLoop:
    import uvloop  # noqa: PLC0415  only a server needs it

    return uvloop.new_event_loop()
