"""A session on its way out, as JSON lines, Markdown, a zip or an asciicast: read and sent piece by piece."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Literal

from ..domain.errors import NotFound
from ..domain.snapshot import Snapshot, Worker
from ..keeper.spool import INDEX_ENTRY
from ..log.pieces import cast_lines, output_chunks
from ..log.recording import Recording
from ..log.recordings import EVENTS, METADATA, metadata_of
from ..log.redacted import RedactedRecording
from ..store.events import PAGE, EventStore
from ..wire.browser import read_event
from ..wire.event_lines import event_lines
from ..wire.json import decode, encode
from ..wire.markdown import MarkdownWriter
from ..wire.redaction import Redaction
from ..wire.zip_stream import ZipStream
from ..workers.worker_services import WorkerServices

Format = Literal["jsonl", "markdown", "zip", "cast"]
MEDIA = {
    "jsonl": ("application/x-ndjson", "jsonl"),
    "markdown": ("text/markdown; charset=utf-8", "md"),
    "zip": ("application/zip", "zip"),
    "cast": ("application/x-asciicast", "cast"),
}
PAGE_BYTES = 1 << 20
ENTRIES_AT_ONCE = 4096  # of the index of a terminal


class SessionExport:
    """A session as it was when the export began; what happens meanwhile is not in it."""

    def __init__(self, snapshot: Snapshot, workshop: WorkerServices, redaction: Redaction) -> None:
        self._snapshot = snapshot
        self._workshop = workshop
        self._redaction = redaction

    def stream(self, format: Format, worker_id: str | None = None) -> AsyncIterator[bytes]:
        match format:
            case "jsonl":
                return self._jsonl()
            case "markdown":
                return self._markdown()
            case "zip":
                return self._zip()
            case "cast":
                return _from_thread(self._cast(self._terminal(worker_id)))

    async def _jsonl(self) -> AsyncIterator[bytes]:
        async for wires in self._pages():
            yield event_lines(wires)

    async def _markdown(self) -> AsyncIterator[bytes]:
        markdown = MarkdownWriter()
        async for wires in self._pages():
            yield "".join(markdown.feed(read_event(decode(wire))) for wire in wires).encode()

    async def _zip(self) -> AsyncIterator[bytes]:
        """A whole recording: `bullpen import` reads it back, `bullpen replay` plays it."""
        out = ZipStream()
        out.begin(METADATA)
        yield out.write(encode(self._redaction.redact_json(metadata_of(self._snapshot))) + b"\n")
        out.begin(EVENTS)
        async for wires in self._pages():
            yield await asyncio.to_thread(out.write, event_lines(wires))
        async for piece in _from_thread(self._files(out)):
            yield piece
        yield out.close()

    async def _pages(self) -> AsyncIterator[list[bytes]]:
        store: EventStore = self._workshop.store
        done, head = 0, self._snapshot.last_seq
        while done < head:
            wires = await store.wire(self._snapshot.id, done, head + 1, PAGE, most_bytes=PAGE_BYTES)
            if not wires:
                raise NotFound(f"session {self._snapshot.id} was purged meanwhile")
            done += len(wires)
            yield list(map(self._redact, wires)) if self._redaction.active else wires

    def _redact(self, wire: bytes) -> bytes:
        event = decode(wire)
        return encode({**event, "data": self._redaction.redact_json(event["data"])})

    def _files(self, out: ZipStream) -> Iterator[bytes]:
        for worker in self._terminals():
            for run in range(1, worker.run + 1):
                with closing(self._recording(worker.id, run)) as recording:
                    yield from _spool(out, recording, f"terminals/{worker.id}/{run}")
                    if recording.end:
                        out.begin(f"terminals/{worker.id}.{run}.cast")
                        yield from map(out.write, cast_lines(recording, self._title(worker)))
        if not self._redaction.active:  # nobody can say what a picture shows
            for path in self._workshop.images.files(self._snapshot.id):
                out.begin(f"images/{path.name}")
                yield out.write(path.read_bytes())

    def _cast(self, worker: Worker) -> Iterator[bytes]:
        with closing(self._recording(worker.id, worker.run)) as recording:
            yield from cast_lines(recording, self._title(worker))

    def _title(self, worker: Worker) -> str:
        title: str = self._redaction.redact_json(f"{self._snapshot.title} · {worker.name}")
        return title

    def _recording(self, worker_id: str, run: int) -> Recording:
        """A reader of our own: it ends where the recording ends now."""
        path: Path = self._workshop.children.spool(worker_id, run)
        return RedactedRecording(path, self._redaction) if self._redaction.active else Recording(path)

    def _terminals(self) -> list[Worker]:
        workers = self._snapshot.workers.values()
        return [worker for worker in workers if worker.type == "terminal" or worker.agent_kind == "pty"]

    def _terminal(self, worker_id: str | None) -> Worker:
        """The terminal a cast shows: the one that is named, else the first."""
        found = [worker for worker in self._terminals() if worker_id in (None, worker.id)]
        if not found:
            raise NotFound("there is no such terminal in the session; a cast shows a terminal")
        return found[0]


def _spool(out: ZipStream, recording: Recording, place: str) -> Iterator[bytes]:
    """The segments as the keeper wrote them, up to where the recording ended when it was opened."""
    segments = recording.segments()
    for number, (start, entries) in enumerate(segments):
        end = segments[number + 1][0] if number + 1 < len(segments) else recording.end
        if start > recording.end:
            return
        out.begin(f"{place}/{start:020d}.idx")
        while some := list(islice(entries, ENTRIES_AT_ONCE)):
            yield out.write(b"".join(INDEX_ENTRY.pack(*entry) for entry in some if entry[0] <= end))
        out.begin(f"{place}/{start:020d}.bin")
        yield from map(out.write, output_chunks(recording, start, end))


async def _from_thread(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces, each made in a thread; empty ones are left out."""
    take: Callable[[], bytes | None] = lambda: next(pieces, None)  # noqa: E731
    while (piece := await asyncio.to_thread(take)) is not None:
        if piece:
            yield piece
