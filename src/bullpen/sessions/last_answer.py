"""Find the text an agent wrote in its last finished turn, by reading the log backwards."""

from ..domain.conversation import AgentMessage, TurnEnd, TurnStart
from ..domain.events import Fact
from ..store.events import PAGE_EVENTS, EventStore
from ..wire.browser import read_event
from ..wire.json import decode

TYPES = (TurnStart.type, AgentMessage.type, TurnEnd.type)


async def last_answer(store: EventStore, session_id: str, worker_id: str) -> str:
    """Return the text of the last answer of an agent; an empty string if it has not answered yet."""
    search, before = _AnswerSearch(), None
    while page := await store.encoded_events(session_id, 0, before, PAGE_EVENTS, TYPES, newest=True):
        events = [read_event(decode(each)) for each in page]
        for event in reversed(events):
            if event.worker_id == worker_id and search.is_complete_with(event.fact):
                return search.answer
        before = events[0].seq
    return search.answer


class _AnswerSearch:
    """Collects the messages of the last finished turn from facts in reverse order.

    Messages of a turn that still runs are skipped.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._is_finished = False

    @property
    def answer(self) -> str:
        """Return the text found so far; empty while no finished turn was seen."""
        return "".join(reversed(self._pieces)) if self._is_finished else ""

    def is_complete_with(self, fact: Fact) -> bool:
        """Process the next older fact; return whether the answer is complete."""
        match fact:
            case AgentMessage():
                self._pieces.append(fact.text)
            case TurnEnd():
                self._is_finished = True
            case TurnStart() if self.answer.strip():
                return True
            case TurnStart():
                self._pieces.clear()
                self._is_finished = False
        return False
