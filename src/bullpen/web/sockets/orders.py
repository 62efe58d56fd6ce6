"""What a session's socket can be told to do: the same orders as over REST, each answered under its `id`."""

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
    """Takes one order at a time; what it returns goes into the acknowledgement."""

    def __init__(self, session: Session, principal: Principal) -> None:
        self._session = session
        self._principal = principal

    async def take(self, message: dict[str, Any]) -> dict[str, Any]:
        by = self._principal.name
        match message["type"]:
            case "prompt":
                self._check()
                order = prompt_order(_read(PromptShape, message), by)
                return prompted_json(await self._session.prompt(order))
            case "cancel":
                self._check()
                await self._session.cancel_turn(_read(CancelShape, message).worker_id, by)
            case "permission":
                self._check()
                option_id = _read(PermissionAnswerShape, message).option_id
                await self._session.answer_permission(_text(message, "permissionId"), option_id, by)
            case "question":
                self._check()
                body = _read(QuestionAnswerShape, message)
                await self._session.answer_question(
                    _text(message, "questionId"), body.action, body.content, by
                )
            case "queue":
                self._check()
                return await self._queue(message)
            case unknown:
                raise Invalid(f"a session's socket does not take {unknown}")
        return {}

    async def _queue(self, message: dict[str, Any]) -> dict[str, Any]:
        """One of the orders a queue takes; adding one says under which id it waits."""
        session = self._session
        if message.get("action") == "add":
            body = _read(NewQueueItemShape, message)
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
                _text(message, "messageId"), **_read(QueueEditShape, message).changes()
            ),
            "move": lambda: session.move_queued(
                _text(message, "messageId"), _read(MoveShape, message).direction
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

    def _check(self) -> None:
        if self._principal.scope < Scope.OPERATE:
            raise Forbidden("this needs the scope operate")


def _read(shape: type[S], message: dict[str, Any]) -> S:
    try:
        return shape.model_validate(message)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise Invalid(f"{place}: {first['msg']}") from None


def _text(message: dict[str, Any], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        raise Invalid(f"{name} is missing")
    return value
