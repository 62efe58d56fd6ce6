"""Follows what terminals print so that it can be found, a moment after they have printed it.

The recording is read, never the program's stream: nothing waits for us. A flood is left alone until it
pauses, and then only its end is read; we wait while somebody types, and after each batch we rest many times
as long as it took.
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
    add_printed,
    read_marks,
    unfinished,
)
from ..wire.terminal_text import TerminalText, TextPiece, whole
from ..workers.children import ChildHandle
from .sessions import Sessions

PAUSE = 1.0  # seconds: a screen changes more often than anybody looks for it
BATCH = 256 << 10  # bytes
FLOOD = 256 << 10  # bytes since the last look: more than anybody reads
BEHIND = 256 << 10  # bytes of a flood that are read
LONGEST_FLOOD = 30  # looks until one that does not pause is read all the same
TOGETHER = 50  # workers in a batch: a transaction for each of a crowd's would cost more than what they print
REST = 40  # times as long as a batch took
NO_ROOM_PAUSE = 10.0


class _IndexedWorker(Struct):
    """A worker that may print more, and the lines it printed lately."""

    printing: PrintingWorker
    text: TerminalText
    child: ChildHandle | None = None  # of its last run, while we listen to it
    end: int = 0  # of its recording, when we last looked
    put_off: int = 0  # how often, because it was flooding
    listener: Callable[[], None] = lambda: None


class TerminalIndexer:
    """One batch at a time, of a few workers each."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._database = sessions.store.database
        self._workshop = sessions.workshop
        self._heard: dict[str, _IndexedWorker] = {}
        self._due: dict[str, None] = {}  # in the order they were noted
        self._wake = asyncio.Event()

    async def follow(self) -> None:
        """For as long as the house stands."""
        async with self._sessions.watching(self._note):
            await self._sessions.taken_up.wait()
            for printing in await self._database.read(unfinished):
                self._hear(printing)
            while True:
                await self._wake.wait()
                await asyncio.sleep(PAUSE)
                self._wake.clear()
                await self._catch_up()

    async def _catch_up(self) -> None:
        due, self._due = self._due, {}
        waiting = []
        for worker_id in due:
            if self._floods(worker_id):
                self._look_at(worker_id)
            else:
                waiting.append(worker_id)
        while waiting:
            try:
                waiting = await self._index_some(waiting)
            except Unavailable:
                await asyncio.sleep(NO_ROOM_PAUSE)

    def _floods(self, worker_id: str) -> bool:
        """Whether it prints more than anybody reads: that can wait for a pause, though not for ever."""
        heard = self._heard.get(worker_id)
        if heard is None or heard.child is None or heard.child.ended.done():
            return False
        grown, heard.end = heard.child.recording.end - heard.end, heard.child.recording.end
        heard.put_off = heard.put_off + 1 if grown > FLOOD and heard.put_off < LONGEST_FLOOD else 0
        return heard.put_off > 0

    async def _index_some(self, waiting: list[str]) -> list[str]:
        """A batch of what the first of them printed; who waits then."""
        await self._sessions.courtesy.pause()
        began = clock.monotonic()
        first = {id: heard for id in waiting[:TOGETHER] if (heard := self._heard.get(id))}
        marks = await self._database.read(lambda c: read_marks(c, first))
        read = await asyncio.to_thread(self._read_batch, list(first.values()), marks)
        if news := [each for each in read if each.mark != marks[each.printing.worker_id]]:
            await self._database.write(partial(add_printed, printed=news))
        for each in news:
            heard = self._heard.get(each.printing.worker_id)
            if each.mark.over and heard is not None and heard.printing is each.printing:
                self._forget(each.printing.worker_id)
        await asyncio.sleep(REST * (clock.monotonic() - began))
        unread = list(first)[len(read) :]
        with_later_runs = [each.printing.worker_id for each in news if each.mark.run < each.printing.run]
        return [*with_later_runs, *unread, *waiting[TOGETHER:]]

    def _read_batch(
        self, listened: list[_IndexedWorker], marks: dict[str, IndexedOffset]
    ) -> list[PrintedText]:
        """What the first of them printed, not much more than a batch in all. In a thread."""
        read: list[PrintedText] = []
        length = 0
        for heard in listened:
            printed = self._read(heard, marks[heard.printing.worker_id])
            read.append(printed)
            length += sum(len(each.text) for each in printed.documents)
            if length >= BATCH:
                break
        return read

    def _read(self, heard: _IndexedWorker, mark: IndexedOffset) -> PrintedText:
        """What one of them printed since, and how far we are then."""
        printing = heard.printing
        child = self._workshop.children.get(printing.worker_id, mark.run)
        last = mark.run == printing.run
        goes_on = (last and printing.alive) or (child is not None and not child.ended.done())
        recording = self._workshop.recording(printing.worker_id, mark.run)
        try:
            data, start = _read_on(recording, mark.offset, goes_on)
            pieces = heard.text.read(data, start)
            documents = _dated(recording, pieces, printing.worker_id, mark.run)
            end = start + len(data)
            over = not goes_on and end >= recording.end
        finally:
            if child is None:
                recording.close()
        if over and not last:
            return PrintedText(printing, documents, IndexedOffset(mark.run + 1, 0))
        return PrintedText(printing, documents, IndexedOffset(mark.run, end, over))

    def _note(self, session_id: str, snapshot: Snapshot | None) -> None:
        if snapshot is None:
            heard = [id for id, each in self._heard.items() if each.printing.session_id == session_id]
            for worker_id in heard:
                self._forget(worker_id)
            return
        for worker in snapshot.workers.values():
            if (worker.type == "terminal" or worker.is_typed_to) and self._is_news(worker):
                self._hear(
                    PrintingWorker(
                        worker_id=worker.id, session_id=session_id, run=worker.run, alive=worker.alive
                    )
                )

    def _is_news(self, worker: Worker) -> bool:
        heard = self._heard.get(worker.id)
        if heard is None:
            return worker.alive  # else all it printed can be found already
        known = heard.printing
        unheard = heard.child is None and self._workshop.children.get(worker.id, worker.run) is not None
        return known.run != worker.run or known.alive != worker.alive or unheard

    def _hear(self, printing: PrintingWorker) -> None:
        """Looks soon, and whenever the worker has printed more."""
        worker_id = printing.worker_id
        heard = self._heard.setdefault(worker_id, _IndexedWorker(printing, TerminalText()))
        heard.printing = printing
        child = self._workshop.children.get(worker_id, printing.run)
        if child is not None and child is not heard.child:
            self._unhear(heard)
            heard.end = heard.put_off = 0
            heard.child, heard.listener = child, partial(self._look_at, worker_id)
            child.recording.watch(heard.listener)
            child.ended.add_done_callback(lambda _: self._look_at(worker_id))
        self._look_at(worker_id)

    def _look_at(self, worker_id: str) -> None:
        self._due[worker_id] = None
        self._wake.set()

    def _forget(self, worker_id: str) -> None:
        """Nothing when it is forgotten already: a session may be purged while its last words are read."""
        if heard := self._heard.pop(worker_id, None):
            self._unhear(heard)
        self._due.pop(worker_id, None)

    def _unhear(self, heard: _IndexedWorker) -> None:
        if heard.child is not None:
            heard.child.recording.unwatch(heard.listener)


def _read_on(recording: Recording, offset: int, goes_on: bool) -> tuple[bytes, int]:
    """The next bytes worth reading, and where they begin."""
    start = max(offset, recording.start, recording.end - BEHIND)
    try:
        data = recording.read(start, BATCH)
    except SpoolGone:  # dropped in this moment; the next look begins later
        return b"", offset
    if start + len(data) >= recording.end and not goes_on:
        return data, start
    return data[: whole(data) or (len(data) if len(data) == BATCH else 0)], start


def _dated(recording: Recording, pieces: list[TextPiece], worker_id: str, run: int) -> list[SearchDocument]:
    """Each with the moment it was printed."""
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
