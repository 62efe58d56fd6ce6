"""Start one server: open all its parts, serve requests until a signal, close the parts."""

import asyncio
import gc
import os
import resource
import signal
import socket
import ssl
import sys
import webbrowser
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

import structlog
import uvicorn

from . import __version__, home, logs
from .agents.registry import AgentRegistry
from .cli.link import opens_elsewhere, print_qr_code
from .config import Config, config_file
from .domain.addresses import is_loopback
from .domain.errors import Invalid, Unavailable
from .domain.sandbox import DEFAULT_LEVEL
from .git.command import CONFINEMENT
from .git.overlays import OVERLAYS
from .intervals import intervals
from .keeper.time_slice import shorten_time_slice
from .sandbox.command import MECHANISMS
from .sandbox.git_calls import GitSandbox
from .sandbox.grants import SandboxGrants
from .sandbox.mechanism import describe_mechanism
from .sandbox.roots import WorkspaceRoots
from .server_path import SERVER_PATH
from .sessions.agent_console import find_saved_sessions
from .sessions.clones import RepositoryClones
from .sessions.disk_watch import DiskWatch
from .sessions.foreground_watch import ForegroundWatch
from .sessions.inbox import LiveInbox
from .sessions.indexing import EventIndexer
from .sessions.limit_watch import LimitWatch
from .sessions.notifications import Notifications
from .sessions.presence import ViewerPresence
from .sessions.recorder import SessionRecorder
from .sessions.registration import RepositoryRegistration
from .sessions.rules import RuleSet
from .sessions.sessions import Sessions
from .sessions.startup import refuse_foreign_children, resume_sessions, start_disconnect_timers
from .sessions.tasks import background_tasks
from .sessions.terminal_indexing import TerminalIndexer
from .sessions.worktrees import RepositoryWorktrees
from .store import fence
from .store.credentials import CredentialStore
from .store.database import Database
from .store.events import EventStore
from .store.identity import forget_loss, note_loss, read_identity
from .store.records import RecordStore
from .threads import default_pool
from .web import app
from .web.audit import AuditLog
from .web.auth import Credentials
from .web.connections import ClientConnection, OnRefusal, UnauthenticatedConnections
from .web.context import WebContext
from .web.derived_secrets import DerivedSecrets, SecretKind, new_seed
from .web.hosts import ServerUrls
from .web.http import HttpProtocol
from .web.listener import ConnectionListener
from .web.owner import OwnerToken
from .web.rest.recordings import sweep_imports
from .web.scopes import Scope
from .web.traffic import TrafficCounters
from .web.websocket import WebSocketProtocol
from .web.worker_keys import WorkerKeys
from .workers.children import ChildHandles
from .workers.screens import Screens
from .workers.worker_services import WorkerServices

log = structlog.get_logger()

MAX_FRAME_BYTES = 16 << 20
SHUTDOWN_SECONDS = 3
ADDRESS_RETRY_SECONDS = 1.0
THREAD_SWITCH_SECONDS = 0.0005  # how long a thread may block the event loop; Python's default is 5 ms


def serve(config: Config, open_browser: bool, take_over: bool = False) -> int:
    """Run the server until a signal; return the exit code. Raise FenceLost if it lost its database.

    `take_over`: claim the database even if another server uses it or commits are missing from it.
    """
    check_listening(config)
    os.umask(0o077)
    with home.hold(config.home):
        logs.configure(config.log_level, config.home / "logs", hidden=(config.token or "",))
        sweep_imports(config.home)
        OVERLAYS.keep_in(config.home / "overlays")
        _raise_descriptor_limit()
        shorten_time_slice()
        sys.setswitchinterval(THREAD_SWITCH_SECONDS)
        with asyncio.Runner(loop_factory=_new_event_loop) as runner:
            try:
                runner.run(_serve(config, open_browser, read_identity(config.home, take_over)))
            except fence.DatabaseWentBack as lost:
                with suppress(OSError):  # the error raised below matters more
                    note_loss(config.home, lost.newest)
                raise
    return 0


def check_listening(config: Config) -> None:
    """Raise Invalid if other machines could connect without TLS, or the certificate cannot be used."""
    if bool(config.tls_certificate) != bool(config.tls_key):
        raise Invalid("TLS needs both a certificate and a key")
    _check_certificate(config)
    if is_loopback(config.host) or config.tls_certificate or config.allow_plain_http_beyond_loopback:
        return
    raise Invalid(
        f"listening on {config.host} without TLS lets others on the network read and type; "
        "give --tls-certificate and --tls-key, or --allow-plain-http-beyond-loopback"
    )


def _check_certificate(config: Config) -> None:
    """Raise Invalid if the TLS certificate or its key cannot be used."""
    if config.tls_certificate is None:
        return
    try:
        # With an empty password, a key that needs one is refused instead of prompted for.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(config.tls_certificate, config.tls_key, "")
    except OSError as error:
        raise Invalid(f"the TLS certificate or its key cannot be used: {error.strerror or error}") from None


async def _serve(config: Config, open_browser: bool, owner: fence.FenceOwner) -> None:
    """Run the server until a signal; raise the error of the database if it is lost to another server."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(default_pool())
    logs.report_escapes(loop)
    with _listening(config) as listener:
        address = ServerUrls(config, listener.getsockname()[1])
        async with _open_context(config, address, owner) as context:
            audit_log = AuditLog(config.home / "logs" / "audit.log")
            built = app.build(context, address.names, audit_log)
            uvicorn_config = _uvicorn_config(config, built.application)
            server = _UvicornServer(uvicorn_config, listener, context.connections, built.on_refusal)
            _stop_on_signals(server)
            ready = asyncio.ensure_future(_get_ready(context, open_browser))
            lost = context.sessions.store.database.fence_lost
            lost.add_done_callback(lambda _: _stop(server))
            await asyncio.gather(server.serve(sockets=[]), _ready_unless_lost(ready, lost))
    if lost.done():
        raise lost.result()


async def _ready_unless_lost(ready: asyncio.Future[None], lost: asyncio.Future[fence.FenceLost]) -> None:
    """Wait until the server is ready; if it loses its database first, stop getting ready."""
    futures: list[asyncio.Future[Any]] = [ready, lost]
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    if ready.done():
        ready.result()
    else:
        ready.cancel()


@asynccontextmanager
async def _open_context(
    config: Config, address: ServerUrls, server: fence.FenceOwner
) -> AsyncIterator[WebContext]:
    """Open everything that lives as long as the server, in order, and close it in reverse."""
    secrets = DerivedSecrets.of_home(config.home)
    lease = fence.Lease(heartbeat=intervals().database_heartbeat)
    async with (
        Database.open(config.database_url, owner=server, lease=lease) as database,
        ChildHandles.open(config.home, config.limits) as children,
        Screens.open(config.home / "screens") as screens,
        background_tasks() as tasks,
    ):
        forget_loss(config.home)
        keys = CredentialStore(database)
        owner = await OwnerToken.load(config.home, config.token, keys, secrets)
        worker_keys = WorkerKeys(secrets, address.url)
        credentials = Credentials(owner, keys, worker_keys, tasks)
        await credentials.load()
        store, records = EventStore(database), RecordStore(database)
        await refuse_foreign_children(children, records)
        agents = AgentRegistry(config_file(os.environ).parent / "agents")
        agents.restore(await records.agents())
        repositories = await records.repository_settings()
        roots = WorkspaceRoots(config, records, repositories)
        await roots.load()
        SERVER_PATH.writable = lambda: (*map(str, roots.directories()), *map(str, config.sandbox_caches))
        services = WorkerServices(config, store, children, screens, agents, roots, worker_keys.environment)
        CONFINEMENT.wrap = GitSandbox(config, services.sandbox.planner.machine_paths).wrap
        services.repositories = repositories
        services.sandbox.grants = grants = SandboxGrants(records, roots.protected)
        await grants.load()
        sessions = Sessions(store, services, tasks)
        sessions.imported_ids = await records.imported_sessions()
        inbox, presence, rules = LiveInbox(sessions), ViewerPresence(tasks), RuleSet(records, sessions)
        await rules.load()
        sessions.run_in_background(inbox.run, "inbox")
        sessions.run_in_background(ForegroundWatch(sessions).run, "programs in terminals")
        sessions.run_in_background(LimitWatch(sessions).run, "limits")
        sessions.run_in_background(DiskWatch(sessions).run, "disk limit")
        sessions.run_in_background(EventIndexer(sessions).run, "search")
        sessions.run_in_background(TerminalIndexer(sessions).run, "search in terminals")
        sessions.run_in_background(Notifications(config, inbox, presence, tasks).run, "notifications")
        worktrees = RepositoryWorktrees(records, sessions)
        registration = RepositoryRegistration(records, services, worktrees)
        yield WebContext(
            config=config,
            sessions=sessions,
            records=records,
            worktrees=worktrees,
            registration=registration,
            clones=RepositoryClones(config.home / "clones", tasks, registration.register_clone),
            credentials=credentials,
            presence=presence,
            inbox=inbox,
            rules=rules,
            recorder=SessionRecorder(sessions, records),
            agents=agents,
            roots=roots,
            grants=grants,
            secrets=secrets,
            traffic=TrafficCounters(),
            connections=UnauthenticatedConnections(config.request_timeout, _descriptor_limit()),
            url=address.url,
            public_url=address.public_url,
        )


async def _get_ready(context: WebContext, open_browser: bool) -> None:
    """Resume the sessions, which makes the server healthy, then start the background work."""
    await resume_sessions(context.sessions, context.records)
    _write_address(context)
    await start_disconnect_timers(context.sessions, context.records, context.presence)
    gc.freeze()  # these objects stay; scanning them in each collection would delay requests
    gc.enable()
    context.sessions.run_in_background(partial(_tend_worktrees, context.worktrees), "worktrees")
    context.sessions.run_in_background(context.clones.recover, "clones")
    context.sessions.run_in_background(context.recorder.run, "recorder")
    url = await _login_url(context)
    _print_url(url)
    log.info("ready", url=context.public_url, pid=os.getpid())
    # In the background, because the server must go on if it cannot find these out now.
    context.sessions.run_in_background(partial(_offer_import, context), "import offer")
    context.sessions.run_in_background(partial(_report_sandbox, context.config), "sandbox report")
    context.sessions.run_in_background(context.sessions.services.warm_up, "warm-up")
    if open_browser and "SSH_CONNECTION" not in os.environ:
        await asyncio.to_thread(webbrowser.open, url)


async def _report_sandbox(config: Config) -> None:
    """Log in one line which sandbox agents have, as a warning if this machine could have a better one."""
    found = await MECHANISMS.find()
    report = log.info if found.name == "bubblewrap" else log.warning
    report(describe_mechanism(found, config.sandbox or DEFAULT_LEVEL))


def _write_address(context: WebContext) -> None:
    """Write the address for the command line, or retry later if the disk is full."""
    try:
        home.write_address(context.config.home, context.url)
    except OSError as error:
        log.error("the command line cannot find the server until the disk has room", reason=str(error))
        context.sessions.run_in_background(partial(_write_address_later, context), "address")


async def _write_address_later(context: WebContext) -> None:
    """Write the address as soon as the disk has room."""
    while True:
        await asyncio.sleep(ADDRESS_RETRY_SECONDS)
        with suppress(OSError):
            home.write_address(context.config.home, context.url)
            return


async def _tend_worktrees(worktrees: RepositoryWorktrees) -> None:
    """Recover interrupted work on worktrees, then keep emptying the trash; git may be slow."""
    await worktrees.recover()
    await worktrees.empty_trash_forever()


async def _login_url(context: WebContext) -> str:
    """Return a URL that logs in one browser; without a login code if none can be stored."""
    code = context.secrets.make(SecretKind.CODE, new_seed())
    try:
        await context.credentials.add_code(code, Scope.ADMIN)
    except Unavailable as error:
        log.error("no login code", reason=str(error))
        return context.public_url
    return f"{context.public_url}/#code={code}"


def _print_url(url: str) -> None:
    """Print the address, on a terminal also as a QR code if a phone can open it."""
    sys.stdout.write(f"Bullpen {__version__} is at {url}\n")
    if sys.stdout.isatty() and opens_elsewhere(url):
        print_qr_code(url)
    sys.stdout.flush()


async def _offer_import(context: WebContext) -> None:
    """At the first start, name the sessions of agent-console that can be imported."""
    if await context.records.count_sessions():
        return
    if found := await asyncio.to_thread(find_saved_sessions):
        count = "1 session" if len(found.sessions) == 1 else f"{len(found.sessions)} sessions"
        sys.stdout.write(f"{count} of agent-console can be imported: bullpen import {found.path}\n")
        sys.stdout.flush()


class _UvicornServer(uvicorn.Server):
    """uvicorn with its own listener, which counts connections before a TLS handshake.

    It installs no signal handlers: those of uvicorn raise the signal again before the server has closed.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        listening: socket.socket,
        connections: UnauthenticatedConnections,
        on_refusal: OnRefusal,
    ) -> None:
        super().__init__(config)
        self._listening = listening
        self._connections = connections
        self._on_refusal = on_refusal

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections."""
        await super().startup(sockets)
        self._listener = ConnectionListener(
            self._listening, self._connections, self._protocol, self.config.ssl
        )
        self._listener.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections and close the open ones."""
        self._listener.close()
        await super().shutdown(sockets)

    def _protocol(self, connection: ClientConnection) -> HttpProtocol:
        """Return the HTTP protocol of a new connection."""
        return HttpProtocol(self.config, self.server_state, self.lifespan.state, connection, self._on_refusal)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to `_stop_on_signals`."""
        yield


def _stop_on_signals(server: uvicorn.Server) -> None:
    """Stop the server on SIGINT and SIGTERM."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, _stop, server)


def _stop(server: uvicorn.Server) -> None:
    """Let uvicorn end its main loop."""
    server.should_exit = True


def _uvicorn_config(config: Config, application: object) -> uvicorn.Config:
    """Return the configuration of uvicorn."""
    return uvicorn.Config(
        application,  # type: ignore[arg-type]
        http=HttpProtocol,
        ws=WebSocketProtocol,
        ws_max_size=MAX_FRAME_BYTES,
        ws_per_message_deflate=False,
        ws_ping_interval=20,
        ws_ping_timeout=60,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # web/proxies.py
        ssl_certfile=config.tls_certificate,
        ssl_keyfile=config.tls_key,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


@contextmanager
def _listening(config: Config) -> Iterator[socket.socket]:
    """Listen on the configured address for the block, or raise Invalid."""
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


def _raise_descriptor_limit() -> None:
    """Raise the limit of file descriptors: each terminal and each viewer needs one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _descriptor_limit() -> int:
    """Return how many file descriptors the process may open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new uvloop event loop."""
    import uvloop  # noqa: PLC0415  only a server needs it

    return uvloop.new_event_loop()
