"""Add the output of all terminals to the search index, in the background.

The indexer reads recordings, so no program waits for it. While a terminal prints very much, it is skipped;
then only the end of that output is indexed. The indexer waits during keystrokes, and pauses after each
batch.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from .. import clock
from ..domain.errors import Unavailable
from ..domain.searching import TERMINAL_OUTPUT, SearchDocument
from ..domain.snapshot import Snapshot, Worker
from ..keeper.spool import SpoolGone
from ..log.recording import Recording
from ..store.search_terminals import (
    IndexedOffset,
    PrintedText,
    PrintingWorker,
    add_terminal_text,
    read_indexed_offsets,
    workers_to_index,
)
from ..wire.terminal_text import TerminalText, TextPiece, complete_length
from ..workers.children import ChildHandle
from .sessions import Sessions

PAUSE_SECONDS = 1.0  # between two rounds; new output can be found after this time
MAX_BATCH_BYTES = 256 << 10
FLOOD_BYTES = 256 << 10  # since the last round; a terminal that printed more is skipped
MAX_FLOOD_BYTES = 256 << 10  # of the end of skipped output that is indexed
MAX_POSTPONED_ROUNDS = 30  # then a terminal that never pauses is indexed nevertheless
MAX_WORKERS_PER_BATCH = 50  # one transaction for each of many terminals would cost more than indexing
REST_FACTOR = 40  # pause this many times as long as a batch took
RETRY_SECONDS = 10.0


class _IndexedWorker(Struct):
    """A terminal that may print more, with the text of its last lines."""

    printing: PrintingWorker
    text: TerminalText
    child: ChildHandle | None = None  # of its last run, while its output is watched
    end: int = 0  # of its recording, in the last round
    postponed: int = 0  # rounds in which it was skipped
    on_output: Callable[[], None] = lambda: None


class TerminalIndexer:
    """Indexes the output of terminals in batches, each in one transaction."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._database = sessions.store.database
        self._services = sessions.services
        self._workers: dict[str, _IndexedWorker] = {}
        self._due: dict[str, None] = {}  # worker ids, oldest first
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Index the existing output and then all new output, until the server stops."""
        async with self._sessions.watching(self._on_snapshot):
            await self._sessions.workers_resumed.wait()
            for printing in await self._database.read(workers_to_index):
                self._watch_worker(printing)
            while True:
                await self._wake.wait()
                await asyncio.sleep(PAUSE_SECONDS)
                self._wake.clear()
                await self._index_due()

    async def _index_due(self) -> None:
        """Index the queued workers, except those that print very much now."""
        due, self._due = self._due, {}
        waiting = []
        for worker_id in due:
            if self._floods(worker_id):
                self._queue(worker_id)
            else:
                waiting.append(worker_id)
        while waiting:
            try:
                waiting = await self._index_some(waiting)
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)

    def _floods(self, worker_id: str) -> bool:
        """Return whether to skip a terminal in this round because it prints very much."""
        indexed = self._workers.get(worker_id)
        if indexed is None or indexed.child is None or indexed.child.ended.done():
            return False
        grown, indexed.end = indexed.child.recording.end - indexed.end, indexed.child.recording.end
        indexed.postponed = (
            indexed.postponed + 1 if grown > FLOOD_BYTES and indexed.postponed < MAX_POSTPONED_ROUNDS else 0
        )
        return indexed.postponed > 0

    async def _index_some(self, waiting: list[str]) -> list[str]:
        """Index one batch of output; return the workers with output that is not indexed yet."""
        await self._sessions.throttle.wait_while_typing()
        started = clock.monotonic()
        selected = {
            id: indexed for id in waiting[:MAX_WORKERS_PER_BATCH] if (indexed := self._workers.get(id))
        }
        marks = await self._database.read(lambda c: read_indexed_offsets(c, selected))
        read = await asyncio.to_thread(self._read_batch, list(selected.values()), marks)
        if new_pieces := [each for each in read if each.mark != marks[each.printing.worker_id]]:
            await self._database.write(partial(add_terminal_text, printed=new_pieces))
        for each in new_pieces:
            indexed = self._workers.get(each.printing.worker_id)
            if each.mark.over and indexed is not None and indexed.printing is each.printing:
                self._remove(each.printing.worker_id)
        await asyncio.sleep(REST_FACTOR * (clock.monotonic() - started))
        unread = list(selected)[len(read) :]
        with_later_runs = [
            each.printing.worker_id for each in new_pieces if each.mark.run < each.printing.run
        ]
        return [*with_later_runs, *unread, *waiting[MAX_WORKERS_PER_BATCH:]]

    def _read_batch(
        self, workers: list[_IndexedWorker], marks: dict[str, IndexedOffset]
    ) -> list[PrintedText]:
        """Read new output of workers until the batch is full. Runs in a thread."""
        read: list[PrintedText] = []
        length = 0
        for indexed in workers:
            printed = self._read(indexed, marks[indexed.printing.worker_id])
            read.append(printed)
            length += sum(len(each.text) for each in printed.documents)
            if length >= MAX_BATCH_BYTES:
                break
        return read

    def _read(self, indexed: _IndexedWorker, mark: IndexedOffset) -> PrintedText:
        """Read the output of a worker after `mark`; return its text with the next mark."""
        printing = indexed.printing
        child = self._services.children.get(printing.worker_id, mark.run)
        last = mark.run == printing.run
        continues = (last and printing.alive) or (child is not None and not child.ended.done())
        recording = self._services.recording(printing.worker_id, mark.run)
        try:
            data, start = _read_recording(recording, mark.offset, continues)
            pieces = indexed.text.read(data, start)
            documents = _with_times(recording, pieces, printing.worker_id, mark.run)
            end = start + len(data)
            over = not continues and end >= recording.end
        finally:
            if child is None:
                recording.close()
        if over and not last:
            return PrintedText(printing, documents, IndexedOffset(mark.run + 1, 0))
        return PrintedText(printing, documents, IndexedOffset(mark.run, end, over))

    def _on_snapshot(self, session_id: str, snapshot: Snapshot | None) -> None:
        """Watch terminals that started or changed; remove those of a purged session."""
        if snapshot is None:
            indexed = [id for id, each in self._workers.items() if each.printing.session_id == session_id]
            for worker_id in indexed:
                self._remove(worker_id)
            return
        for worker in snapshot.workers.values():
            if (worker.type == "terminal" or worker.is_typed_to) and self._has_changed(worker):
                self._watch_worker(
                    PrintingWorker(
                        worker_id=worker.id, session_id=session_id, run=worker.run, alive=worker.alive
                    )
                )

    def _has_changed(self, worker: Worker) -> bool:
        """Return whether to watch a worker anew: a new worker that is alive, or a new run, state or child."""
        indexed = self._workers.get(worker.id)
        if indexed is None:
            return worker.alive  # the output of an ended worker is indexed already
        known = indexed.printing
        has_new_child = (
            indexed.child is None and self._services.children.get(worker.id, worker.run) is not None
        )
        return known.run != worker.run or known.alive != worker.alive or has_new_child

    def _watch_worker(self, printing: PrintingWorker) -> None:
        """Queue a worker now, and whenever it has printed more."""
        worker_id = printing.worker_id
        indexed = self._workers.setdefault(worker_id, _IndexedWorker(printing, TerminalText()))
        indexed.printing = printing
        child = self._services.children.get(worker_id, printing.run)
        if child is not None and child is not indexed.child:
            self._unwatch(indexed)
            indexed.end = indexed.postponed = 0
            indexed.child, indexed.on_output = child, partial(self._queue, worker_id)
            child.recording.watch(indexed.on_output)
            child.ended.add_done_callback(lambda _: self._queue(worker_id))
        self._queue(worker_id)

    def _queue(self, worker_id: str) -> None:
        """Queue a worker for the next round."""
        self._due[worker_id] = None
        self._wake.set()

    def _remove(self, worker_id: str) -> None:
        """Stop watching a worker; do nothing if it was removed already, by a purge during a batch."""
        if indexed := self._workers.pop(worker_id, None):
            self._unwatch(indexed)
        self._due.pop(worker_id, None)

    def _unwatch(self, indexed: _IndexedWorker) -> None:
        """Stop watching the recording of a child for growth."""
        if indexed.child is not None:
            indexed.child.recording.unwatch(indexed.on_output)


def _read_recording(recording: Recording, offset: int, continues: bool) -> tuple[bytes, int]:
    """Return the next bytes to index, up to the end of a line, and the offset of the first.

    Of a flood only the newest bytes are indexed.
    """
    start = max(offset, recording.start, recording.end - MAX_FLOOD_BYTES)
    try:
        data = recording.read(start, MAX_BATCH_BYTES)
    except SpoolGone:  # deleted meanwhile; the next round starts at a later offset
        return b"", offset
    if start + len(data) >= recording.end and not continues:
        return data, start
    return data[: complete_length(data) or (len(data) if len(data) == MAX_BATCH_BYTES else 0)], start


def _with_times(
    recording: Recording, pieces: list[TextPiece], worker_id: str, run: int
) -> list[SearchDocument]:
    """Return the pieces of text as search documents, each with the time it was printed."""
    if not pieces:
        return []
    documents: list[SearchDocument] = []
    entries = recording.index(pieces[0].offset)
    entry, time = next(entries, None), clock.now_ns()
    for piece in pieces:
        while entry is not None and entry[0] <= piece.offset:
            time, entry = entry[1], next(entries, None)
        documents.append(
            SearchDocument(
                seq=0,
                type=TERMINAL_OUTPUT,
                role=TERMINAL_OUTPUT,
                timestamp=time // 1_000_000,
                text=piece.text,
                worker_id=worker_id,
                run=run,
                offset=piece.offset,
            )
        )
    return documents
