"""Join small pieces of agent text into fewer, larger events.

Text is held for at most MAX_DELAY_SECONDS or until MAX_HELD_CHARS have arrived. Anything else from the agent
flushes it first, so the log has the order of the stream. While text is held, the stream is not marked as
consumed beyond it.
"""

from msgspec import Struct

from ..domain.conversation import AgentMessage, AgentThought
from ..domain.conversation_state import OpenTextBlock
from .jsonrpc import Line

MAX_DELAY_SECONDS = 0.04
MAX_HELD_CHARS = 16 << 10

Text = AgentMessage | AgentThought


class TextChunk(Struct, frozen=True):
    """A piece of text as the agent sent it. `type` is the type of the fact that it becomes a part of."""

    type: str
    text: str
    message_id: str | None = None


class ChunkJoiner:
    """Joins the text of one agent. `block` is the block that was open when an earlier server stopped."""

    def __init__(self, block: OpenTextBlock | None = None) -> None:
        self.deadline: float | None = None  # when the text that waits is due
        self._block = block
        self._pieces: list[str] = []
        self._size = 0
        self._held = 0

    def add(self, chunk: TextChunk, line: Line, now: float) -> list[Text]:
        """Add a piece of agent text; return the facts that are due because of it, if any."""
        facts = [] if self._continues(chunk) else self.flush(closes=True)
        if self._block is None:
            self._block = OpenTextBlock(chunk.type, chunk.message_id)
        if self.deadline is None:
            self.deadline = now + MAX_DELAY_SECONDS
            self._held = line.start
        self._pieces.append(chunk.text)
        self._size += len(chunk.text)
        if self._size >= MAX_HELD_CHARS:
            facts.append(self._take_held(self._block, partial=True))
        return facts

    def take_due(self, now: float) -> list[Text]:
        """Return the held agent text as facts if it has waited long enough."""
        if self._block is None or self.deadline is None or now < self.deadline:
            return []
        return [self._take_held(self._block, partial=True)]

    def flush(self, closes: bool) -> list[Text]:
        """Return the held agent text as facts, because something else must be appended after it.

        `closes`: the block ends, no more text follows in it.
        """
        if self._block is None or (self.deadline is None and not closes):
            return []
        return [self._take_held(self._block, partial=not closes)]

    def consumed_offset(self, end: int) -> int:
        """Return the offset up to which the stream is consumed once the returned facts are stored.

        `end` is the offset up to which it was read.
        """
        return end if self.deadline is None else self._held

    def _continues(self, chunk: TextChunk) -> bool:
        """Return whether the chunk belongs to the open block."""
        block = self._block
        if block is None or block.type != chunk.type:
            return False
        # Most agents send no message id: consecutive pieces then belong together.
        return chunk.message_id is None or chunk.message_id == block.message_id

    def _take_held(self, block: OpenTextBlock, partial: bool) -> Text:
        """Return the held text as one fact; unless `partial`, the block ends with it."""
        text = "".join(self._pieces)
        self._pieces, self._size, self.deadline = [], 0, None
        if not partial:
            self._block = None
        kind = AgentThought if block.type == AgentThought.type else AgentMessage
        return kind(text=text, partial=partial, message_id=block.message_id)
