"""Follow one turn of an agent from its prompt to its end."""

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..client import Client, Event, PromptResult
from ..domain.reasons import end_reason_text

DONE, FAILED, NEEDS_A_PERSON = 0, 1, 3


class FollowedTurn(Struct, frozen=True, kw_only=True):
    """The state of a turn. It is over once it has a stop reason or an error.

    Until it has begun, `worker_id` is the agent for which the prompt waits. `asks` is the open permission or
    question of the agent.
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
        """Whether the turn has ended or failed."""
        return self.stop_reason is not None or self.error is not None

    @property
    def exit_code(self) -> int:
        """The exit code: done, failed, or waiting for a person."""
        if self.asks is not None and not self.is_over:
            return NEEDS_A_PERSON
        return DONE if self.stop_reason == "end_turn" and self.error is None else FAILED


def fold(turn: FollowedTurn, event: Event) -> FollowedTurn:
    """Return the state of the turn after one more event of its session."""
    data = event.data if isinstance(event.data, dict) else {}
    if event.type == "session_end":
        return replace(turn, error=f"the session ended: {end_reason_text(data.get('reason'))}")
    if not turn.begun:
        return _fold_before_start(turn, event, data)
    return _fold_after_start(turn, event, data) if event.worker_id == turn.worker_id else turn


def _fold_before_start(turn: FollowedTurn, event: Event, data: dict[str, Any]) -> FollowedTurn:
    """Apply an event while the prompt waits in the queue or for an agent that starts."""
    match event.type:
        case "turn_start" if data.get("promptId") == turn.prompt_id:
            return replace(turn, worker_id=event.worker_id, begun=True)
        case "worker_failed" if event.worker_id == turn.worker_id:
            return replace(turn, error=str(data.get("error")))
        case "queue_removed" | "queue_failed" if data.get("id") == turn.prompt_id:
            return replace(turn, error="the prompt was removed from the queue")
        case "queue_cleared":
            return replace(turn, error="the queue was cleared")
        case "queue_paused":
            return replace(turn, asks={"message": "the queue is paused; see: bullpen queue ls"})
        case _:
            return turn


def _fold_after_start(turn: FollowedTurn, event: Event, data: dict[str, Any]) -> FollowedTurn:
    """Apply an event of the agent during the turn."""
    match event.type:
        case "agent_message":
            return replace(turn, text=turn.text + str(data.get("text", "")))
        case "permission" | "question":
            return replace(turn, asks=data if data.get("status") == "pending" else None)
        case "worker_activity" if data.get("activity") == "asking":
            # An agent in a terminal asks there. For any other agent, the event with its question came before.
            return replace(turn, asks=turn.asks or {"message": data.get("why"), "terminal": True})
        case "turn_end":
            reason, error = data.get("stopReason"), data.get("error")
            return replace(turn, stop_reason=str(reason), error=str(error) if error else None)
        case "worker_failed" | "worker_exited" | "worker_terminated":
            return replace(turn, error=str(data.get("error") or "the agent ended during its turn"))
        case _:
            return turn


async def follow_turn(
    client: Client,
    session_id: str,
    worker_id: str | None,
    prompted: PromptResult,
    on_event: Callable[[FollowedTurn, Event], None] = lambda *_: None,
) -> FollowedTurn:
    """Follow the turn of a prompt, and return its state once it is over or needs a person."""
    turn = FollowedTurn(prompt_id=prompted.prompt_id, worker_id=worker_id)
    async with aclosing(client.follow(session_id, prompted.seq - 1)) as events:
        async for event in events:
            turn = fold(turn, event)
            on_event(turn, event)
            if turn.is_over or turn.asks is not None:
                return turn
    raise AssertionError("following a session never ends")


def outcome(turn: FollowedTurn, session_id: str) -> dict[str, Any]:
    """Return the state of the turn as JSON fields for scripts."""
    return {
        "sessionId": session_id,
        "workerId": turn.worker_id,
        "promptId": turn.prompt_id,
        "text": turn.text,
        "stopReason": turn.stop_reason,
        "error": turn.error,
        "asks": turn.asks,
    }
