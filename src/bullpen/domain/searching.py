"""What of the log can be found again: whole messages, tool calls, titles, what went wrong."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from .conversation import AgentMessage, AgentThought, Plan, ToolCall, ToolCallUpdate, TurnEnd, UserPrompt
from .events import Error, Event, SessionChanged, SessionStart, WorkerExited, WorkerFailed, WorkerTerminated

PRINTED = "terminal"  # type and role of what a terminal printed
ROLES = ("user", "agent", "system", "title", PRINTED)  # who said it
_SAID = (UserPrompt, AgentMessage, AgentThought, ToolCall, ToolCallUpdate, Plan)
_TOLD = (SessionStart, SessionChanged, Error, WorkerFailed)
TYPES = (*(fact.type for fact in (*_SAID, *_TOLD)), PRINTED)  # of the events that have words
LONGEST = 100_000  # letters of one document
LONGEST_BLOCK = 500  # events a message may take until it is found as far as it got

# After these nothing more comes of a message, even of one whose last piece is missing.
_ENDS = (TurnEnd, WorkerExited, WorkerFailed, WorkerTerminated)

_WORDY = ("title", "rawInput", "rawOutput", "content", "locations")


class SearchDocument(Struct, frozen=True, kw_only=True):
    """Some text, and the moment it was said: its first event.

    What a terminal printed has the run and the offset of its recording; its event is the last one before.
    """

    seq: int
    type: str
    role: str
    timestamp: int
    text: str
    worker_id: str | None = None
    run: int | None = None
    offset: int | None = None


class DocumentBatch(Struct, frozen=True):
    """What some events of a session come to, and the last event that need not be read again."""

    documents: list[SearchDocument]
    until: int


def read_documents(events: Iterable[Event], impatient: bool = False) -> DocumentBatch:
    """Messages come in pieces: one that has not ended is left for the next time, unless we are impatient."""
    open: dict[tuple[str | None, str], list[Event]] = {}
    documents: list[SearchDocument] = []
    last = 0
    for event in events:
        last = event.seq
        if isinstance(event.fact, _ENDS):
            for key in [key for key in open if key[0] == event.worker_id]:
                documents += _joined(open.pop(key))
        if isinstance(event.fact, AgentMessage | AgentThought):
            pieces = open.setdefault((event.worker_id, event.type), [])
            pieces.append(event)
            if not event.fact.partial or len(pieces) >= LONGEST_BLOCK:
                documents += _joined(open.pop((event.worker_id, event.type)))
        elif found := _text(event):
            documents += _documents(event, *found)
    if impatient:
        documents += [document for pieces in open.values() for document in _joined(pieces)]
        return DocumentBatch(documents, last)
    firsts = [pieces[0].seq for pieces in open.values()]
    return DocumentBatch(documents, min(firsts) - 1 if firsts else last)


def _joined(pieces: list[Event]) -> Iterator[SearchDocument]:
    text = "".join(piece.fact.text for piece in pieces)  # type: ignore[attr-defined]
    return _documents(pieces[0], "agent", text)


def _text(event: Event) -> tuple[str, str] | None:  # noqa: PLR0911 (a table)
    """Who said it, and what; None for what nobody would look for."""
    match event.fact:
        case UserPrompt() as fact:
            return "user", fact.text
        case ToolCall() | ToolCallUpdate() as fact:
            return "system", " ".join(_words({name: fact.call.get(name) for name in _WORDY}))
        case Plan() as fact:
            return "system", " ".join(_words(fact.entries))
        case SessionStart() | SessionChanged() as fact if fact.title:
            return "title", fact.title
        case Error() as fact:
            return "system", f"{fact.message} {fact.detail or ''}"
        case WorkerFailed() as fact:
            return "system", f"{fact.error} {fact.stderr or ''}"
        case _:
            return None


def _documents(event: Event, role: str, text: str) -> Iterator[SearchDocument]:
    text = text.strip()[:LONGEST]
    if text:
        yield SearchDocument(
            seq=event.seq,
            type=event.type,
            role=role,
            timestamp=event.timestamp,
            text=text,
            worker_id=event.worker_id,
        )


def _words(value: Any) -> Iterator[str]:
    """All text in a value, however deep: agents describe their calls as they like."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case dict() as fields:
                waiting.extend(reversed(fields.values()))
            case list() as items:
                waiting.extend(reversed(items))
