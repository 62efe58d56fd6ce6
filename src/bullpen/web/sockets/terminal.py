"""WS /ws/session/{sid}/worker/{wid}: a terminal, as in R76 and R77."""

import base64
import binascii
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, WebSocket

from ...domain.commands import check_size
from ...domain.errors import BullpenError, Invalid
from ...domain.ids import new_id
from ...sessions.session import Session
from ...wire.keys import DrawnOffset, KeyInput, read_key
from ...workers.window import WindowSize
from ..context import context_of
from ..numbers import LARGEST
from ..scopes import Scope, allow
from .admission import AdmittedSocket, admitted, loops, seen
from .input_writer import InputWriter
from .output_formats import BinaryFormat, JsonFormat
from .run_stream import RunStream

router = APIRouter()


@router.websocket("/ws/session/{session_id}/worker/{worker_id}", dependencies=[Depends(allow(Scope.VIEW))])
async def worker_socket(
    websocket: WebSocket,
    session_id: str,
    worker_id: str,
    after: Annotated[int | None, Query(ge=0, le=LARGEST)] = None,
    run: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
    client: str | None = None,
    format: str = "binary",
) -> None:
    context = context_of(websocket)
    async with admitted(websocket, context.credentials) as socket:
        session = await context.sessions.get(session_id)
        with seen(context.presence, session, socket.principal):
            typist = InputWriter(client, socket.principal, context.sessions.throttle)
            view = TerminalSocket(session, worker_id, socket, typist, format)
            await view.run(after if run in (None, view.run_number) else None)


class TerminalSocket:
    """A socket on a terminal worker, over all its runs: one loop reads, one sends."""

    def __init__(
        self,
        session: Session,
        worker_id: str,
        socket: AdmittedSocket,
        typist: InputWriter,
        form: str,
    ) -> None:
        self._session = session
        self._worker_id = worker_id
        self._socket = socket
        self._json = form == "json"
        self._typist = typist
        self._busy = False  # with a message: those that come meanwhile wait their turn
        self._viewer = self._new_viewer()

    @property
    def run_number(self) -> int:
        """Which run of the worker is shown: offsets mean nothing in another."""
        return self._viewer.run_number

    async def run(self, after: int | None) -> None:
        async with loops() as tasks:
            showing = tasks.create_task(self._show(after))
            with self._socket.hearing(self._take_at_once):
                async for message in self._socket.messages():
                    self._busy = True
                    try:
                        await self._take(message)
                    except BullpenError as error:
                        await self._socket.send_error(error, message)
                    self._busy = False
            showing.cancel()

    async def _show(self, after: int | None) -> None:
        """One run after the other: a restarted worker begins with a new history."""
        while True:
            await self._viewer.show(after)
            self._viewer, after = self._new_viewer(), None

    def _new_viewer(self) -> RunStream:
        terminal = self._session.terminal(self._worker_id)
        return RunStream(new_id(), self._socket, terminal, JsonFormat() if self._json else BinaryFormat())

    def _take_at_once(self, text: bytes) -> bool:
        """Keys and acknowledgements, which wake nobody; False for what may have to wait, or is refused."""
        said = None if self._busy else read_key(text)
        if isinstance(said, KeyInput) and self._typist.may_type:
            try:
                self._viewer.write(self._typist.writer, said.n, said.data.encode(), acknowledge=True)
            except BullpenError:
                return False  # whoever reads the messages waits for its beginning, or says what is wrong
            self._typist.has_typed()
        elif isinstance(said, DrawnOffset):
            self._viewer.drew(said.offset)
        else:
            return False
        return True

    async def _take(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "input":
                await self._viewer.begun()
                self._type(message)
            case "image":
                await self._paste_image(message)
            case "resize":
                self._typist.require()
                await self._viewer.resize(_size(message), take=message.get("take") is True)
            case "ack":
                self._viewer.drew(_whole(message, "offset"))
            case unknown:
                raise Invalid(f"a terminal takes input, image, resize and ack, not {unknown}")

    def _type(self, message: dict[str, Any]) -> None:
        self._typist.require()
        self._write(message, _bytes(message))

    async def _paste_image(self, message: dict[str, Any]) -> None:
        """Keeps the image in a file and pastes its path (R76); what to do with it is for a person to type."""
        self._typist.require()
        data = await self._session.image_as_input(self._worker_id, _image(message))
        await self._viewer.begun()
        self._write(message, data)

    def _write(self, message: dict[str, Any], data: bytes) -> None:
        if "n" in message:
            self._viewer.write(self._typist.writer, _whole(message, "n"), data, acknowledge=True)
        else:
            self._viewer.write(*self._typist.next_number(), data, acknowledge=False)
        self._typist.has_typed()


def _bytes(message: dict[str, Any]) -> bytes:
    if isinstance(text := message.get("data"), str):
        return text.encode("utf-8", "replace")
    if isinstance(text := message.get("base64"), str):
        return _decoded(text, "base64")
    raise Invalid("input needs data (text) or base64")


def _image(message: dict[str, Any]) -> bytes:
    """Its bytes; what type it is they say themselves, whatever mimeType claims."""
    data = message.get("data")
    if not isinstance(data, str):
        raise Invalid("an image needs data (base64)")
    return _decoded(data.rpartition(",")[2] if data.startswith("data:") else data, "data")


def _decoded(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise Invalid(f"{name} is not base64") from None


def _whole(message: dict[str, Any], name: str) -> int:
    value = message.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Invalid(f"{name} must be a whole number")
    return value


def _size(message: dict[str, Any]) -> WindowSize:
    size = WindowSize(_whole(message, "cols"), _whole(message, "rows"))
    check_size(*size)
    return size
