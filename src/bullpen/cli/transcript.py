"""Write the events of a conversation as text that a person can read: the Markdown of exports, as it grows."""

from ..client import Event
from ..domain.events import Event as DomainEvent
from ..domain.events import read_fact
from ..wire.markdown import MarkdownWriter
from .text import printable_lines


class Transcript:
    """Turns events, in order, into text without control characters, which could control the terminal."""

    def __init__(self) -> None:
        self._writer = MarkdownWriter()

    def feed(self, event: Event) -> bytes:
        """Return the text for one more event; empty for most events."""
        timestamp = round(event.timestamp.timestamp() * 1000)
        fact = read_fact(event.type, event.data)
        known = DomainEvent(event.seq, timestamp, fact, event.worker_id, event.role)
        return printable_lines(self._writer.feed(known)).encode()
