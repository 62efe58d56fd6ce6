"""Says how a turn came out, to a person or to a script."""

import asyncio
import sys

from ..client import Client, Event, PromptResult, Worker
from ..domain.errors import BullpenError, Invalid
from ..domain.reasons import stop_reason_text
from .output import print_json
from .text import printable, short
from .turn import FollowedTurn, follow_turn, outcome
from .unseen_changes import note_seen


class TurnTimedOut(BullpenError):
    code = "timeout"


def check_waiting(wait: bool, timeout: float | None) -> None:
    """Refuses a limit for a wait nobody asked for."""
    if timeout is not None and not wait:
        raise Invalid("--timeout says how long to wait; add --wait")


async def report_turn(
    client: Client,
    session_id: str,
    worker: Worker | None,
    prompted: PromptResult,
    json: bool,
    timeout: float | None,
) -> int:
    """Waits for the end of a turn, prints what was answered, returns the exit code."""
    last = prompted.seq

    def note(event: Event) -> None:
        nonlocal last
        last = event.seq

    try:
        async with asyncio.timeout(timeout):
            turn = await follow_turn(client, session_id, worker.id if worker else None, prompted, note)
    except TimeoutError:
        raise TurnTimedOut(f"the turn was not over after {timeout:g} seconds; it goes on") from None
    if json:
        print_json(outcome(turn, session_id))
    else:
        _print_turn(turn, session_id)
    if turn.is_over and sys.stdout.isatty():
        await note_seen(client, session_id, last)
    return turn.code


def _print_turn(turn: FollowedTurn, session_id: str) -> None:
    if turn.text:
        print(plain(turn.text))
    if turn.error:
        _say(turn.error)
    elif turn.asks is not None:
        _say(what_to_do(turn.asks, short(session_id)))
    elif turn.code:
        _say(f"the turn ended: {stop_reason_text(turn.stop_reason)}")


def what_to_do(asks: dict[str, object], session: str) -> str:
    """What it waits for, and what a person does about it."""
    asked = _what_is_asked(asks)
    if asks.get("terminal"):
        return f"it asks: {asked}; answer with: bullpen attach {session}"
    if "toolCall" in asks:
        return f"it asks: {asked}; answer with: bullpen approve {session}"
    return f"it asks: {asked}; answer with: bullpen answer {session}" if "id" in asks else asked


def _what_is_asked(asks: dict[str, object]) -> str:
    """A permission or a question in a line."""
    call = asks.get("toolCall")
    title = call.get("title") if isinstance(call, dict) else None
    return printable(str(asks.get("message") or title or "a permission"))


def plain(text: str) -> str:
    """An agent's words without anything a terminal would obey."""
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.split("\n"))


def _say(sentence: str) -> None:
    print(f"bullpen: {sentence}", file=sys.stderr)
