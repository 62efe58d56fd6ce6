"""Provide the blocking client for code that does not await."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from .client import Client
from .discovery import ServerDiscovery
from .frames import Frame, OutputFrame
from .loop_thread import LoopThread
from .shapes import Event, News

if TYPE_CHECKING:
    from .terminal import Terminal

Params = ParamSpec("Params")
Result = TypeVar("Result")


def _waiting(
    method: Callable[Concatenate[Client, Params], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate["SyncClient", Params], Result]:
    """Return a blocking version of a method of Client, which runs in the thread of the event loop."""

    @wraps(method)
    def call(self: "SyncClient", /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return self._thread.run(method(self._client, *args, **kwargs))

    return call


class SyncTerminal:
    """A worker's terminal for blocking code. Iterate over it for frames; write to it from any thread."""

    def __init__(self, thread: LoopThread, terminal: "Terminal") -> None:
        self._thread = thread
        self._terminal = terminal

    def __iter__(self) -> Iterator[Frame]:
        return self._thread.iterate(aiter(self._terminal))

    def write(self, data: bytes) -> None:
        """Type data into the terminal."""
        self._thread.run(self._terminal.write(data))

    def flush(self) -> None:
        """Wait until the keeper has received all that was written."""
        self._thread.run(self._terminal.flush())

    def resize(self, cols: int, rows: int) -> None:
        """Set the size that this viewer can display."""

        async def resize() -> None:
            self._terminal.resize(cols, rows)

        self._thread.run(resize())


class SyncClient:
    """The blocking version of `Client`. Use it in a `with` statement, which ends its thread."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        discovery: ServerDiscovery | None = None,
        patience: float = 30.0,
    ) -> None:
        self._client = Client(url, token, discovery=discovery, patience=patience)
        self._thread = LoopThread()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.run(self._client.__aexit__())
        self._thread.close()

    health = _waiting(Client.health)
    settings = _waiting(Client.settings)
    set_log_level = _waiting(Client.set_log_level)
    login_code = _waiting(Client.login_code)
    sessions = _waiting(Client.sessions)
    session = _waiting(Client.session)
    create_session = _waiting(Client.create_session)
    change_session = _waiting(Client.change_session)
    import_sessions = _waiting(Client.import_sessions)
    import_recording = _waiting(Client.import_recording)
    rebuild_recordings = _waiting(Client.rebuild_recordings)
    share = _waiting(Client.share)
    complete_session = _waiting(Client.complete_session)
    reopen_session = _waiting(Client.reopen_session)
    leave_session = _waiting(Client.leave_session)
    saved_sessions = _waiting(Client.saved_sessions)
    restart_session = _waiting(Client.restart_session)
    delete_session = _waiting(Client.delete_session)
    workers = _waiting(Client.workers)
    worker = _waiting(Client.worker)
    add_worker = _waiting(Client.add_worker)
    end_worker = _waiting(Client.end_worker)
    restart_worker = _waiting(Client.restart_worker)
    ports = _waiting(Client.ports)
    agents = _waiting(Client.agents)
    add_agent = _waiting(Client.add_agent)
    replace_agent = _waiting(Client.replace_agent)
    remove_agent = _waiting(Client.remove_agent)
    prompt = _waiting(Client.prompt)
    messages = _waiting(Client.messages)
    cancel_turn = _waiting(Client.cancel_turn)
    set_model = _waiting(Client.set_model)
    set_mode = _waiting(Client.set_mode)
    set_option = _waiting(Client.set_option)
    log_in_agent = _waiting(Client.log_in_agent)
    permissions = _waiting(Client.permissions)
    answer_permission = _waiting(Client.answer_permission)
    questions = _waiting(Client.questions)
    answer_question = _waiting(Client.answer_question)
    queue = _waiting(Client.queue)
    enqueue = _waiting(Client.enqueue)
    queued = _waiting(Client.queued)
    move_queued = _waiting(Client.move_queued)
    queue_settings = _waiting(Client.queue_settings)
    change_queue_settings = _waiting(Client.change_queue_settings)
    edit_queued = _waiting(Client.edit_queued)
    remove_queued = _waiting(Client.remove_queued)
    clear_queue = _waiting(Client.clear_queue)
    pause_queue = _waiting(Client.pause_queue)
    resume_queue = _waiting(Client.resume_queue)
    send_now = _waiting(Client.send_now)
    inbox = _waiting(Client.inbox)
    mark_seen = _waiting(Client.mark_seen)
    sandbox = _waiting(Client.sandbox)
    run_sandbox = _waiting(Client.run_sandbox)
    sandbox_grants = _waiting(Client.sandbox_grants)
    allow_in_sandbox = _waiting(Client.allow_in_sandbox)
    remove_sandbox_grant = _waiting(Client.remove_sandbox_grant)
    roots = _waiting(Client.roots)
    add_root = _waiting(Client.add_root)
    remove_root = _waiting(Client.remove_root)
    directories = _waiting(Client.directories)
    found_repositories = _waiting(Client.found_repositories)
    start_clone = _waiting(Client.start_clone)
    clone = _waiting(Client.clone)
    cancel_clone = _waiting(Client.cancel_clone)
    branches = _waiting(Client.branches)
    file_names = _waiting(Client.file_names)
    rules = _waiting(Client.rules)
    add_rule = _waiting(Client.add_rule)
    remove_rule = _waiting(Client.remove_rule)
    search = _waiting(Client.search)
    usage = _waiting(Client.usage)
    events = _waiting(Client.events)
    timeline = _waiting(Client.timeline)
    directory = _waiting(Client.directory)
    read_file = _waiting(Client.read_file)
    add_image = _waiting(Client.add_image)
    image = _waiting(Client.image)
    comment = _waiting(Client.comment)
    diff = _waiting(Client.diff)
    repositories = _waiting(Client.repositories)
    repository = _waiting(Client.repository)
    add_repository = _waiting(Client.add_repository)
    edit_repository = _waiting(Client.edit_repository)
    delete_repository = _waiting(Client.delete_repository)
    worktrees = _waiting(Client.worktrees)
    add_worktree = _waiting(Client.add_worktree)
    remove_worktree = _waiting(Client.remove_worktree)
    restore_worktree = _waiting(Client.restore_worktree)
    tokens = _waiting(Client.tokens)
    add_token = _waiting(Client.add_token)
    revoke_token = _waiting(Client.revoke_token)
    rotate_token = _waiting(Client.rotate_token)

    def follow(self, session_id: str, after: int = 0, *, looking: bool = False) -> Iterator[Event]:
        """Yield every event after a seq; see `Client.follow`."""
        return self._thread.iterate(self._client.follow(session_id, after, looking=looking))

    def dashboard(self) -> Iterator[News]:
        """Yield all sessions, then every change of a session; see `Client.dashboard`."""
        return self._thread.iterate(self._client.dashboard())

    def output(self, session_id: str, worker_id: str, after: int = 0) -> Iterator[OutputFrame]:
        """Yield what a terminal has printed so far; see `Client.output`."""
        return self._thread.iterate(self._client.output(session_id, worker_id, after))

    def export(
        self, session_id: str, format: str = "zip", *, redact: bool = False, worker_id: str | None = None
    ) -> Iterator[bytes]:
        """Yield a session as a file in chunks; see `Client.export`."""
        chunks = self._client.export(session_id, format, redact=redact, worker_id=worker_id)
        return self._thread.iterate(chunks)

    def recording_cast(self, session_id: str, worker_id: str) -> Iterator[bytes]:
        """Yield a terminal's recording as asciicast v2; see `Client.recording_cast`."""
        return self._thread.iterate(self._client.recording_cast(session_id, worker_id))

    @contextmanager
    def terminal(
        self, session_id: str, worker_id: str, after: int | None = None, *, may_skip: bool = False
    ) -> Iterator[SyncTerminal]:
        """Open a worker's terminal; see `Client.terminal`."""
        context = self._client.terminal(session_id, worker_id, after, may_skip=may_skip)
        with self._thread.enter(context) as terminal:
            yield SyncTerminal(self._thread, terminal)
