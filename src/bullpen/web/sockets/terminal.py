"""`/ws/session/{sid}/worker/{wid}`: the socket of a terminal: output to the client, input from it."""

import base64
import binascii
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, WebSocket

from ...domain.commands import check_size
from ...domain.errors import BullpenError, Invalid
from ...domain.ids import new_id
from ...sessions.session import Session
from ...wire.viewer_messages import DrawnOffset, KeyInput, read_key
from ...workers.window import WindowSize
from ..context import context_of
from ..numbers import MAX_SAFE_INTEGER
from ..scopes import Scope, allow
from .admission import AdmittedSocket, admit, count_viewer, socket_tasks
from .input_writer import InputWriter
from .output_formats import OUTPUT_FORMATS, OutputFormat
from .run_stream import RunStream

router = APIRouter()


@router.websocket("/ws/session/{session_id}/worker/{worker_id}", dependencies=[Depends(allow(Scope.VIEW))])
async def worker_socket(
    websocket: WebSocket,
    session_id: str,
    worker_id: str,
    after: Annotated[int | None, Query(ge=0, le=MAX_SAFE_INTEGER)] = None,
    run: Annotated[int | None, Query(ge=1, le=MAX_SAFE_INTEGER)] = None,
    client: str | None = None,
    format: Literal["json", "binary"] = "json",
) -> None:
    """Accept a client of a terminal. `after` and `run` tell what output it has already."""
    context = context_of(websocket)
    async with admit(websocket, context.credentials) as socket:
        session = await context.sessions.get(session_id)
        with count_viewer(context.presence, session, socket.principal):
            writer = InputWriter(client, socket.principal, context.sessions.throttle)
            terminal_socket = TerminalSocket(session, worker_id, socket, writer, OUTPUT_FORMATS[format])
            await terminal_socket.run(after if run in (None, terminal_socket.run_number) else None)


class TerminalSocket:
    """A WebSocket connected to a terminal worker, for all its runs. One task receives, one sends."""

    def __init__(
        self,
        session: Session,
        worker_id: str,
        socket: AdmittedSocket,
        writer: InputWriter,
        output_format: Callable[[], OutputFormat],
    ) -> None:
        self._session = session
        self._worker_id = worker_id
        self._socket = socket
        self._output_format = output_format
        self._writer = writer
        self._handling = False  # a message; later ones must wait for it
        self._stream = self._new_stream()

    @property
    def run_number(self) -> int:
        """Return the number of the run that is sent; offsets belong to one run."""
        return self._stream.run_number

    async def run(self, after: int | None) -> None:
        """Serve the socket until the client disconnects. `after` is the offset it has already."""
        async with socket_tasks() as tasks:
            sending = tasks.create_task(self._send_runs(after))
            with self._socket.listening(self._handle_short_text):
                async for message in self._socket.messages():
                    self._handling = True
                    try:
                        await self._handle(message)
                    except BullpenError as error:
                        await self._socket.send_error(error, message)
                    self._handling = False
            sending.cancel()

    async def _send_runs(self, after: int | None) -> None:
        """Send one run after the other; a restarted worker starts with a new history."""
        while True:
            await self._stream.run(after)
            self._stream, after = self._new_stream(), None

    def _new_stream(self) -> RunStream:
        """Return a stream of the latest run of the worker."""
        terminal = self._session.terminal(self._worker_id)
        return RunStream(new_id(), self._socket, terminal, self._output_format())

    def _handle_short_text(self, text: bytes) -> bool:
        """Handle a keystroke or an acknowledgement without a task switch.

        Return False if the message must wait or is refused; then it is received as usual.
        """
        message = None if self._handling else read_key(text)
        if isinstance(message, KeyInput) and self._writer.may_type:
            try:
                self._stream.write(self._writer.writer, message.n, message.data.encode(), acknowledge=True)
            except BullpenError:
                return False  # the receiving task waits for the start, or sends the error
            self._writer.note_keystroke()
        elif isinstance(message, DrawnOffset):
            self._stream.note_drawn(message.offset)
        else:
            return False
        return True

    async def _handle(self, message: dict[str, Any]) -> None:
        """Type input or an image, resize the window, or note how far the viewer has drawn.

        Raise Invalid for any other message.
        """
        match message["type"]:
            case "input":
                await self._stream.wait_started()
                self._type(message)
            case "image":
                await self._paste_image(message)
            case "resize":
                self._writer.require_may_type()
                await self._stream.resize(_window_size(message), take=message.get("take") is True)
            case "ack":
                self._stream.note_drawn(_whole_number(message, "offset"))
            case unknown:
                raise Invalid(f"a terminal takes input, image, resize and ack, not {unknown}")

    def _type(self, message: dict[str, Any]) -> None:
        """Type the bytes of an input message, if the client may type."""
        self._writer.require_may_type()
        self._write(message, _input_bytes(message))

    async def _paste_image(self, message: dict[str, Any]) -> None:
        """Store an image and type its path into the terminal, as if the user had pasted it."""
        self._writer.require_may_type()
        data = await self._session.image_as_input(self._worker_id, _image_bytes(message))
        await self._stream.wait_started()
        self._write(message, data)

    def _write(self, message: dict[str, Any], data: bytes) -> None:
        """Send input to the terminal, under the client's number or under a generated one."""
        if "n" in message:
            self._stream.write(self._writer.writer, _whole_number(message, "n"), data, acknowledge=True)
        else:
            self._stream.write(*self._writer.next_number(), data, acknowledge=False)
        self._writer.note_keystroke()


def _input_bytes(message: dict[str, Any]) -> bytes:
    """Return the bytes to type, which the message has as text or as base64; else raise Invalid."""
    if isinstance(text := message.get("data"), str):
        return text.encode("utf-8", "replace")
    if isinstance(text := message.get("base64"), str):
        return _decoded(text, "base64")
    raise Invalid("input needs data (text) or base64")


def _image_bytes(message: dict[str, Any]) -> bytes:
    """Return the decoded image, or raise Invalid. Its type is found from the bytes, not from `mimeType`."""
    data = message.get("data")
    if not isinstance(data, str):
        raise Invalid("an image needs data (base64)")
    return _decoded(data.rpartition(",")[2] if data.startswith("data:") else data, "data")


def _decoded(text: str, name: str) -> bytes:
    """Return decoded base64, or raise Invalid with the name of the field."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise Invalid(f"{name} is not base64") from None


def _whole_number(message: dict[str, Any], name: str) -> int:
    """Return a field that must be a non-negative integer, or raise Invalid."""
    value = message.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Invalid(f"{name} must be a whole number")
    return value


def _window_size(message: dict[str, Any]) -> WindowSize:
    """Return the window size in a message, or raise Invalid."""
    size = WindowSize(_whole_number(message, "cols"), _whole_number(message, "rows"))
    check_size(*size)
    return size
