"""What an agent said in its last finished turn, read from the newest end of the log."""

from ..domain.conversation import AgentMessage, TurnEnd, TurnStart
from ..domain.events import Fact
from ..store.events import PAGE, EventStore
from ..wire.browser import read_event
from ..wire.json import decode

TYPES = (TurnStart.type, AgentMessage.type, TurnEnd.type)


async def last_answer(store: EventStore, session_id: str, worker_id: str) -> str:
    """Its text; empty when it has not answered anything."""
    looking, before = _AnswerSearch(), None
    while page := await store.wire(session_id, 0, before, PAGE, TYPES, newest=True):
        events = [read_event(decode(each)) for each in page]
        for event in reversed(events):
            if event.worker_id == worker_id and looking.has_found(event.fact):
                return looking.answer
        before = events[0].seq
    return looking.answer


class _AnswerSearch:
    """Sees facts backwards; what belongs to a turn that still runs is passed over."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._is_finished = False

    @property
    def answer(self) -> str:
        return "".join(reversed(self._pieces)) if self._is_finished else ""

    def has_found(self, fact: Fact) -> bool:
        """Whether with this fact, the one before all seen so far, the answer is whole."""
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
