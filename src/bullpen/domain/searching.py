"""Extract searchable text from events: whole messages, tool calls, titles and errors."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from .conversation import AgentMessage, AgentThought, Plan, ToolCall, ToolCallUpdate, TurnEnd, UserPrompt
from .events import Error, Event, SessionChanged, SessionStart, WorkerExited, WorkerFailed, WorkerTerminated

TERMINAL_OUTPUT = "terminal"  # type and role of terminal output
ROLES = ("user", "agent", "system", "title", TERMINAL_OUTPUT)  # the author of a text
_CONVERSATION = (UserPrompt, AgentMessage, AgentThought, ToolCall, ToolCallUpdate, Plan)
_SESSION = (SessionStart, SessionChanged, Error, WorkerFailed)
TYPES = (*(fact.type for fact in (*_CONVERSATION, *_SESSION)), TERMINAL_OUTPUT)  # the searchable event types
MAX_DOCUMENT_LENGTH = 100_000  # characters
MAX_MESSAGE_EVENTS = 500  # a longer message is split into several documents

# These facts end a message whose last piece is missing.
_MESSAGE_ENDS = (TurnEnd, WorkerExited, WorkerFailed, WorkerTerminated)

_CALL_FIELDS = ("title", "rawInput", "rawOutput", "content", "locations")


class SearchDocument(Struct, frozen=True, kw_only=True):
    """A searchable text with the number and time of its first event.

    Terminal output also has the run and the offset in its recording; its event is the last one before it.
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
    """The documents of some events. `until` is the last event that need not be read again."""

    documents: list[SearchDocument]
    until: int


def read_documents(events: Iterable[Event], flush: bool = False) -> DocumentBatch:
    """Return the documents in some events. A message without its last piece is left for the next batch.

    `flush`: also return unfinished messages.
    """
    open: dict[tuple[str | None, str], list[Event]] = {}
    documents: list[SearchDocument] = []
    last = 0
    for event in events:
        last = event.seq
        if isinstance(event.fact, _MESSAGE_ENDS):
            for key in [key for key in open if key[0] == event.worker_id]:
                documents += _joined(open.pop(key))
        if isinstance(event.fact, AgentMessage | AgentThought):
            pieces = open.setdefault((event.worker_id, event.type), [])
            pieces.append(event)
            if not event.fact.partial or len(pieces) >= MAX_MESSAGE_EVENTS:
                documents += _joined(open.pop((event.worker_id, event.type)))
        elif found := _role_and_text(event):
            documents += _documents(event, *found)
    if flush:
        documents += [document for pieces in open.values() for document in _joined(pieces)]
        return DocumentBatch(documents, last)
    firsts = [pieces[0].seq for pieces in open.values()]
    return DocumentBatch(documents, min(firsts) - 1 if firsts else last)


def _joined(pieces: list[Event]) -> Iterator[SearchDocument]:
    """Yield the search document of a message that came in pieces."""
    text = "".join(piece.fact.text for piece in pieces)  # type: ignore[attr-defined]
    return _documents(pieces[0], "agent", text)


def _role_and_text(event: Event) -> tuple[str, str] | None:  # noqa: PLR0911 (a table)
    """Return the author's role and the text of an event; None if it has no searchable text."""
    match event.fact:
        case UserPrompt() as fact:
            return "user", fact.text
        case ToolCall() | ToolCallUpdate() as fact:
            return "system", " ".join(_strings({name: fact.call.get(name) for name in _CALL_FIELDS}))
        case Plan() as fact:
            return "system", " ".join(_strings(fact.entries))
        case SessionStart() | SessionChanged() as fact if fact.title:
            return "title", fact.title
        case Error() as fact:
            return "system", f"{fact.message} {fact.detail or ''}"
        case WorkerFailed() as fact:
            return "system", f"{fact.error} {fact.stderr or ''}"
        case _:
            return None


def _documents(event: Event, role: str, text: str) -> Iterator[SearchDocument]:
    """Yield the search document for a text, if the text is not blank."""
    text = text.strip()[:MAX_DOCUMENT_LENGTH]
    if text:
        yield SearchDocument(
            seq=event.seq,
            type=event.type,
            role=role,
            timestamp=event.timestamp,
            text=text,
            worker_id=event.worker_id,
        )


def _strings(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value: agents describe their calls in their own structures."""
    remaining = [value]
    while remaining:
        match remaining.pop():
            case str(text):
                yield text
            case dict() as fields:
                remaining.extend(reversed(fields.values()))
            case list() as items:
                remaining.extend(reversed(items))
