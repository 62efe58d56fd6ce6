"""Print a turn as it happens: the answer, and for a user also thoughts, tool calls and the plan."""

from typing import Any

from ..client import Event
from ..domain.reasons import readable
from .text import paint, printable, printable_lines


class TurnOutput:
    """Prints the events of one turn. With `answer_only`, the output is exactly the answer."""

    def __init__(self, *, answer_only: bool = False) -> None:
        self._answer_only = answer_only
        self._line_is_open = False

    def print_event(self, event: Event) -> None:
        """Print an event of the turn; most events print nothing."""
        data = event.data if isinstance(event.data, dict) else {}
        if event.type == "agent_message":
            self._print(printable_lines(str(data.get("text", ""))))
        elif not self._answer_only:
            self._print_work(event.type, data)

    def end_line(self) -> None:
        """Begin a new line, unless the last one has ended."""
        if self._line_is_open:
            self._print("\n")

    def _print_work(self, event_type: str, data: dict[str, Any]) -> None:
        """Print what the agent does besides answering."""
        match event_type:
            case "agent_thought":
                self._print(printable_lines(str(data.get("text", ""))), "grey")
            case "tool_call":
                title = str(data.get("title") or readable(str(data.get("kind") or "a tool")))
                self.end_line()
                self._print(f"· {printable(title)}\n", "blue")
            case "plan":
                self.end_line()
                for step in data.get("entries") or []:
                    if isinstance(step, dict):
                        status, content = readable(str(step.get("status"))), str(step.get("content"))
                        self._print(f"{printable(f'  {status}: {content}')}\n", "grey")

    def _print(self, text: str, colour: str | None = None) -> None:
        """Print a text and flush it."""
        if text:
            print(paint(text, colour), end="", flush=True)
            self._line_is_open = not text.endswith("\n")
