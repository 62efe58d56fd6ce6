"""Small pieces of text become fewer: agents stream at model speed, a log need not.

Text waits for at most `DELAY` or until there is enough of it; anything else an agent says lets it go first,
so the order of the stream is the order of the log. While text waits, the stream is not consumed beyond it.
"""

from msgspec import Struct

from ..domain.conversation import AgentMessage, AgentThought
from ..domain.conversation_state import OpenTextBlock
from .jsonrpc import Line

DELAY = 0.04  # seconds
ENOUGH = 16 << 10  # characters

Text = AgentMessage | AgentThought


class TextChunk(Struct, frozen=True):
    """A piece of text as the agent sent it; `type` is that of the fact it becomes a part of."""

    type: str
    text: str
    message_id: str | None = None


class ChunkJoiner:
    """Joins the text of one agent; `block` is the one that was open when an earlier process stopped."""

    def __init__(self, block: OpenTextBlock | None = None) -> None:
        self.deadline: float | None = None  # when the text that waits is due
        self._block = block
        self._pieces: list[str] = []
        self._size = 0
        self._held = 0

    def add(self, chunk: TextChunk, line: Line, now: float) -> list[Text]:
        """Takes a chunk; what is due because of it, if anything."""
        facts = [] if self._continues(chunk) else self.interrupt(closes=True)
        if self._block is None:
            self._block = OpenTextBlock(chunk.type, chunk.message_id)
        if self.deadline is None:
            self.deadline = now + DELAY
            self._held = line.start
        self._pieces.append(chunk.text)
        self._size += len(chunk.text)
        if self._size >= ENOUGH:
            facts.append(self._hand_out(self._block, partial=True))
        return facts

    def due(self, now: float) -> list[Text]:
        """What has waited long enough."""
        if self._block is None or self.deadline is None or now < self.deadline:
            return []
        return [self._hand_out(self._block, partial=True)]

    def interrupt(self, closes: bool) -> list[Text]:
        """What has to be said before something else is; `closes`: nothing will follow in this block."""
        if self._block is None or (self.deadline is None and not closes):
            return []
        return [self._hand_out(self._block, partial=not closes)]

    def consumed(self, end: int) -> int:
        """How far the stream is consumed when everything up to `end` was read and handed out is stored."""
        return end if self.deadline is None else self._held

    def _continues(self, chunk: TextChunk) -> bool:
        block = self._block
        if block is None or block.type != chunk.type:
            return False
        # Most agents name no message: then what stands side by side belongs together.
        return chunk.message_id is None or chunk.message_id == block.message_id

    def _hand_out(self, block: OpenTextBlock, partial: bool) -> Text:
        text = "".join(self._pieces)
        self._pieces, self._size, self.deadline = [], 0, None
        if not partial:
            self._block = None
        kind = AgentThought if block.type == AgentThought.type else AgentMessage
        return kind(text=text, partial=partial, message_id=block.message_id)
