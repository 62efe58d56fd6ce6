"""One turn of an agent, followed from its prompt to its end."""

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..client import Client, Event, PromptResult
from ..domain.reasons import end_reason_text

DONE, FAILED, NEEDS_A_PERSON = 0, 1, 3


class FollowedTurn(Struct, frozen=True, kw_only=True):
    """What is known of a turn; over once it has a stop reason, a failure or something to ask.

    Until it has begun, `worker_id` is the agent the prompt waits for.
    """

    prompt_id: str
    worker_id: str | None
    begun: bool = False
    text: str = ""
    stop_reason: str | None = None
    error: str | None = None
    asks: dict[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        return self.stop_reason is not None or self.error is not None

    @property
    def code(self) -> int:
        """The exit code: fine, failed, or waiting for somebody."""
        if self.asks is not None and not self.is_over:
            return NEEDS_A_PERSON
        return DONE if self.stop_reason == "end_turn" and self.error is None else FAILED


def fold(turn: FollowedTurn, event: Event) -> FollowedTurn:
    """The turn after one more event of its session."""
    data = event.data if isinstance(event.data, dict) else {}
    if event.type == "session_end":
        return replace(turn, error=f"the session ended: {end_reason_text(data.get('reason'))}")
    if not turn.begun:
        return _before(turn, event, data)
    return _within(turn, event, data) if event.worker_id == turn.worker_id else turn


def _before(turn: FollowedTurn, event: Event, data: dict[str, Any]) -> FollowedTurn:
    """While the prompt waits: for an agent that starts, or behind others."""
    match event.type:
        case "turn_start" if data.get("promptId") == turn.prompt_id:
            return replace(turn, worker_id=event.worker_id, begun=True)
        case "worker_failed" if event.worker_id == turn.worker_id:
            return replace(turn, error=str(data.get("error")))
        case "queue_removed" | "queue_failed" if data.get("id") == turn.prompt_id:
            return replace(turn, error="the prompt was taken out of the queue")
        case "queue_cleared":
            return replace(turn, error="the queue was cleared")
        case "queue_paused":
            return replace(turn, asks={"message": "the queue is paused; see: bullpen queue ls"})
        case _:
            return turn


def _within(turn: FollowedTurn, event: Event, data: dict[str, Any]) -> FollowedTurn:
    match event.type:
        case "agent_message":
            return replace(turn, text=turn.text + str(data.get("text", "")))
        case "permission" | "question":
            return replace(turn, asks=data if data.get("status") == "pending" else None)
        case "worker_activity" if data.get("activity") == "asking":
            # An agent that only has a terminal asks there; of any other the question came before this.
            return replace(turn, asks=turn.asks or {"message": data.get("why"), "terminal": True})
        case "turn_end":
            reason, error = data.get("stopReason"), data.get("error")
            return replace(turn, stop_reason=str(reason), error=str(error) if error else None)
        case "worker_failed" | "worker_exited" | "worker_terminated":
            return replace(turn, error=str(data.get("error") or "the agent ended in the middle of its turn"))
        case _:
            return turn


async def follow_turn(
    client: Client,
    session_id: str,
    worker_id: str | None,
    prompted: PromptResult,
    seen: Callable[[Event], None] = lambda _: None,
) -> FollowedTurn:
    """The turn of a prompt to an agent when it is over, or when it needs a person."""
    turn = FollowedTurn(prompt_id=prompted.prompt_id, worker_id=worker_id)
    async with aclosing(client.follow(session_id, prompted.seq - 1)) as events:
        async for event in events:
            turn = fold(turn, event)
            seen(event)
            if turn.is_over or turn.asks is not None:
                return turn
    raise AssertionError("a log has no end")


def outcome(turn: FollowedTurn, session_id: str) -> dict[str, Any]:
    """The turn for scripts."""
    return {
        "sessionId": session_id,
        "workerId": turn.worker_id,
        "promptId": turn.prompt_id,
        "text": turn.text,
        "stopReason": turn.stop_reason,
        "error": turn.error,
        "asks": turn.asks,
    }
