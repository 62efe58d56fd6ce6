"""Commands that a client sends on the socket of a session: the same as over REST, acknowledged by `id`."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ...domain.errors import Forbidden, Invalid
from ...sessions.session import Session
from ..rest.agent_shapes import (
    CancelShape,
    MoveShape,
    NewQueueItemShape,
    PermissionAnswerShape,
    PromptShape,
    QuestionAnswerShape,
    QueueEditShape,
    in_ms,
)
from ..rest.prompts import prompt_order, prompted_json
from ..scopes import Principal, Scope

S = TypeVar("S", bound=BaseModel)


class SessionOrders:
    """Executes the commands of one client, one at a time."""

    def __init__(self, session: Session, principal: Principal) -> None:
        self._session = session
        self._principal = principal

    async def take(self, message: dict[str, Any]) -> dict[str, Any]:
        """Execute a command; return the fields to add to its acknowledgement.

        Raise Invalid for an unknown command.
        """
        by = self._principal.name
        match message["type"]:
            case "prompt":
                self._require_operate()
                order = prompt_order(_validate(PromptShape, message), by)
                return prompted_json(await self._session.prompt(order))
            case "cancel":
                self._require_operate()
                await self._session.cancel_turn(_validate(CancelShape, message).worker_id, by)
            case "permission":
                self._require_operate()
                option_id = _validate(PermissionAnswerShape, message).option_id
                await self._session.answer_permission(_text(message, "permissionId"), option_id, by)
            case "question":
                self._require_operate()
                body = _validate(QuestionAnswerShape, message)
                await self._session.answer_question(
                    _text(message, "questionId"), body.action, body.content, by
                )
            case "queue":
                self._require_operate()
                return await self._queue(message)
            case unknown:
                raise Invalid(f"a session's socket does not take {unknown}")
        return {}

    async def _queue(self, message: dict[str, Any]) -> dict[str, Any]:
        """Execute a queue command, or raise Invalid for an unknown one; adding a message returns its id."""
        session = self._session
        if message.get("action") == "add":
            body = _validate(NewQueueItemShape, message)
            item = await session.enqueue(
                body.message,
                body.image_ids,
                body.client_id,
                title=body.title,
                scheduled_time=in_ms(body.scheduled_time),
            )
            return {"messageId": item.id}
        actions: dict[object, Callable[[], Awaitable[object]]] = {
            "edit": lambda: session.edit_queued(
                _text(message, "messageId"), **_validate(QueueEditShape, message).changes()
            ),
            "move": lambda: session.move_queued(
                _text(message, "messageId"), _validate(MoveShape, message).direction
            ),
            "remove": lambda: session.remove_queued(_text(message, "messageId")),
            "send_now": lambda: session.send_now(_text(message, "messageId"), self._principal.name),
            "clear": session.clear_queue,
            "pause": session.pause_queue,
            "resume": session.resume_queue,
        }
        action = message.get("action")
        if not isinstance(action, str) or action not in actions:
            raise Invalid(f"a queue takes add, {', '.join(map(str, actions))}, not {action}")
        await actions[action]()
        return {}

    def _require_operate(self) -> None:
        """Raise Forbidden without the scope `operate`."""
        if self._principal.scope < Scope.OPERATE:
            raise Forbidden("this needs the scope operate")


def _validate(shape: type[S], message: dict[str, Any]) -> S:
    """Return the message as a shape, or raise Invalid."""
    try:
        return shape.model_validate(message)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise Invalid(f"{place}: {first['msg']}") from None


def _text(message: dict[str, Any], name: str) -> str:
    """Return a text field of the message, or raise Invalid."""
    value = message.get(name)
    if not isinstance(value, str):
        raise Invalid(f"{name} is missing")
    return value
