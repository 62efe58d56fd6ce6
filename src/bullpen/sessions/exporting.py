"""Export a session as JSON lines, Markdown, zip or asciicast, as a stream of chunks."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Literal

from ..domain.errors import NotFound
from ..domain.snapshot import Snapshot, Worker
from ..keeper.spool import INDEX_ENTRY
from ..log.export_pieces import cast_lines, output_chunks
from ..log.recording import Recording
from ..log.recording_store import EVENTS, METADATA, metadata_of
from ..log.redacted_recording import RedactedRecording
from ..store.events import PAGE_EVENTS, EventStore
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
MAX_PAGE_BYTES = 1 << 20
MAX_INDEX_ENTRIES = 4096  # of a terminal recording in one chunk


class SessionExport:
    """Exports a session as it was when the export began; later events are left out."""

    def __init__(self, snapshot: Snapshot, services: WorkerServices, redaction: Redaction) -> None:
        self._snapshot = snapshot
        self._services = services
        self._redaction = redaction

    def stream(self, format: Format, worker_id: str | None = None) -> AsyncIterator[bytes]:
        """Return the chunks of the export. `worker_id` is the terminal of a cast (default: the first)."""
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
        """Yield the events as JSON lines with checksums, page by page."""
        async for encoded_events in self._pages():
            yield event_lines(encoded_events)

    async def _markdown(self) -> AsyncIterator[bytes]:
        """Yield the conversation as Markdown, page by page."""
        markdown = MarkdownWriter()
        async for encoded_events in self._pages():
            yield "".join(markdown.feed(read_event(decode(encoded))) for encoded in encoded_events).encode()

    async def _zip(self) -> AsyncIterator[bytes]:
        """Yield a complete recording as a zip file, for `bullpen import` and `bullpen replay`."""
        out = ZipStream()
        out.begin(METADATA)
        yield out.write(encode(self._redaction.redact_json(metadata_of(self._snapshot))) + b"\n")
        out.begin(EVENTS)
        async for encoded_events in self._pages():
            yield await asyncio.to_thread(out.write, event_lines(encoded_events))
        async for chunk in _from_thread(self._files(out)):
            yield chunk
        yield out.close()

    async def _pages(self) -> AsyncIterator[list[bytes]]:
        """Yield pages of encoded events up to the head at the start, redacted if requested.

        Raise NotFound if the session is purged meanwhile.
        """
        store: EventStore = self._services.store
        done, head = 0, self._snapshot.last_seq
        while done < head:
            encoded_events = await store.encoded_events(
                self._snapshot.id, done, head + 1, PAGE_EVENTS, max_bytes=MAX_PAGE_BYTES
            )
            if not encoded_events:
                raise NotFound(f"session {self._snapshot.id} was purged meanwhile")
            done += len(encoded_events)
            yield list(map(self._redact, encoded_events)) if self._redaction.active else encoded_events

    def _redact(self, encoded: bytes) -> bytes:
        """Return an encoded event with the secrets in its data covered."""
        event = decode(encoded)
        return encode({**event, "data": self._redaction.redact_json(event["data"])})

    def _files(self, out: ZipStream) -> Iterator[bytes]:
        """Yield the recordings of terminals, as spool and as cast, and the images, as chunks of the zip.

        A redacted export has no images.
        """
        for worker in self._terminals():
            for run in range(1, worker.run + 1):
                with closing(self._recording(worker.id, run)) as recording:
                    yield from _zip_spool(out, recording, f"terminals/{worker.id}/{run}")
                    if recording.end:
                        out.begin(f"terminals/{worker.id}.{run}.cast")
                        yield from map(out.write, cast_lines(recording, self._title(worker)))
        if not self._redaction.active:  # an image may show a secret
            for path in self._services.images.files(self._snapshot.id):
                out.begin(f"images/{path.name}")
                yield out.write(path.read_bytes())

    def _cast(self, worker: Worker) -> Iterator[bytes]:
        """Yield the asciicast of the latest run of a terminal."""
        with closing(self._recording(worker.id, worker.run)) as recording:
            yield from cast_lines(recording, self._title(worker))

    def _title(self, worker: Worker) -> str:
        """Return the redacted title of a cast."""
        title: str = self._redaction.redact_json(f"{self._snapshot.title} · {worker.name}")
        return title

    def _recording(self, worker_id: str, run: int) -> Recording:
        """Open the recording of a run for this export, redacted if asked for; it ends where it ends now."""
        path: Path = self._services.children.spool(worker_id, run)
        return RedactedRecording(path, self._redaction) if self._redaction.active else Recording(path)

    def _terminals(self) -> list[Worker]:
        """Return the workers whose output was recorded."""
        workers = self._snapshot.workers.values()
        return [worker for worker in workers if worker.type == "terminal" or worker.agent_kind == "pty"]

    def _terminal(self, worker_id: str | None) -> Worker:
        """Return the terminal with this id (default: the first). Raise NotFound if there is none."""
        found = [worker for worker in self._terminals() if worker_id in (None, worker.id)]
        if not found:
            raise NotFound("there is no such terminal in the session; a cast shows a terminal")
        return found[0]


def _zip_spool(out: ZipStream, recording: Recording, directory: str) -> Iterator[bytes]:
    """Yield the segments as the keeper wrote them, up to the end of the recording when it was opened."""
    segments = recording.segments()
    for number, (start, entries) in enumerate(segments):
        end = segments[number + 1][0] if number + 1 < len(segments) else recording.end
        if start > recording.end:
            return
        out.begin(f"{directory}/{start:020d}.idx")
        while page := list(islice(entries, MAX_INDEX_ENTRIES)):
            yield out.write(b"".join(INDEX_ENTRY.pack(*entry) for entry in page if entry[0] <= end))
        out.begin(f"{directory}/{start:020d}.bin")
        yield from map(out.write, output_chunks(recording, start, end))


async def _from_thread(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks of a blocking iterator, each read in a thread; skip empty ones."""
    next_chunk: Callable[[], bytes | None] = lambda: next(chunks, None)  # noqa: E731
    while (chunk := await asyncio.to_thread(next_chunk)) is not None:
        if chunk:
            yield chunk
