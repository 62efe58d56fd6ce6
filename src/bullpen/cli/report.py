"""Wait for the end of a turn, and print its result for the user or a script."""

import asyncio
import sys
from contextlib import suppress

from ..client import Client, Event, PromptResult, Worker
from ..domain.errors import BullpenError, Forbidden, Invalid
from ..domain.reasons import stop_reason_text
from .output import print_json
from .text import printable, short
from .turn import FollowedTurn, follow_turn, outcome
from .turn_output import TurnOutput


class TurnTimedOut(BullpenError):
    """The turn did not end within --timeout."""

    code = "timeout"


def check_timeout(wait: bool, timeout: float | None) -> None:
    """Raise Invalid if --timeout is given without --wait."""
    if timeout is not None and not wait:
        raise Invalid("--timeout limits the wait; add --wait")


async def report_turn(
    client: Client,
    session_id: str,
    worker: Worker | None,
    prompted: PromptResult,
    json: bool,
    timeout: float | None,
) -> int:
    """Print the agent's answer as it comes, wait for the end of the turn, and return the exit code.

    Raise TurnTimedOut if the turn is not over in time; it continues.
    """
    last_seq = prompted.seq
    output = TurnOutput(answer_only=not sys.stdout.isatty())

    def show(turn: FollowedTurn, event: Event) -> None:
        nonlocal last_seq
        last_seq = event.seq
        if turn.begun and event.worker_id == turn.worker_id and not json:
            output.print_event(event)

    try:
        async with asyncio.timeout(timeout):
            turn = await follow_turn(client, session_id, worker.id if worker else None, prompted, show)
    except TimeoutError:
        raise TurnTimedOut(f"the turn was not over after {timeout:g} seconds; it continues") from None
    except asyncio.CancelledError:  # Ctrl-C
        output.end_line()  # before the message
        id = short(session_id)
        _say(f"the agent keeps working; follow it: bullpen logs -f {id}; stop it: bullpen cancel {id}")
        raise
    finally:
        output.end_line()
    if json:
        print_json(outcome(turn, session_id))
    else:
        _print_end(turn, session_id)
    if turn.is_over and sys.stdout.isatty():
        await note_seen(client, session_id, last_seq)
    return turn.exit_code


async def note_seen(client: Client, session_id: str, seq: int) -> None:
    """Mark a session as seen up to an event, if the token allows it."""
    with suppress(Forbidden):
        await client.mark_seen(session_id, seq)


def _print_end(turn: FollowedTurn, session_id: str) -> None:
    """Print how the turn ended if it did not succeed."""
    if turn.error:
        _say(turn.error)
    elif turn.asks is not None:
        _say(describe_request(turn.asks, short(session_id)))
    elif turn.exit_code:
        _say(f"the turn ended: {stop_reason_text(turn.stop_reason)}")


def describe_request(request: dict[str, object], session: str) -> str:
    """Return a sentence with what an agent asks, and the command that answers it."""
    text = _request_text(request)
    if request.get("terminal"):
        return f"it asks: {text}; answer with: bullpen attach {session}"
    if "toolCall" in request:
        return f"it asks: {text}; answer with: bullpen approve {session}"
    return f"it asks: {text}; answer with: bullpen answer {session}" if "id" in request else text


def _request_text(request: dict[str, object]) -> str:
    """Return the message of a question or the title of a permission's tool call in one line."""
    call = request.get("toolCall")
    title = call.get("title") if isinstance(call, dict) else None
    return printable(str(request.get("message") or title or "a permission"))


def _say(sentence: str) -> None:
    """Print a message to standard error."""
    print(f"bullpen: {sentence}", file=sys.stderr)
