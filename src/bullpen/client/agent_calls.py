"""The part of the client that talks to agents: prompts, permissions, questions, the queue."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from .rest import RestClient, RestRequest
from .talk_shapes import (
    Agent,
    AgentList,
    Message,
    MessageList,
    Permission,
    PermissionList,
    PromptResult,
    Question,
    QuestionList,
    Queue,
    QueueItem,
)

_MESSAGES = 10_000


class AgentCalls:
    """What a session's agents can be told and asked."""

    _rest: RestClient

    async def agents(self) -> list[Agent]:
        """Every agent that is defined, installed or not."""
        return (await self._rest.call(AgentList, RestRequest("GET", "/api/agents"))).agents

    async def prompt(
        self,
        session_id: str,
        text: str,
        *,
        prompt_id: str | None = None,
        worker_id: str | None = None,
        role: str | None = None,
        image_ids: Iterable[str] = (),
        busy: str | None = None,
        source: dict[str, str] | None = None,
        key: str | None = None,
    ) -> PromptResult:
        """Says something to an agent; returns once it is stored.

        `source` passes on what another worker of the session said: {"role": …} or {"workerId": …}; with
        {"what": "diff"} in it, what has changed in that worker's workspace.
        """
        optional = {"promptId": prompt_id, "workerId": worker_id, "role": role, "busy": busy, "from": source}
        body: dict[str, Any] = {"text": text, "imageIds": list(image_ids)}
        body |= {name: value for name, value in optional.items() if value is not None}
        return await self._rest.call(
            PromptResult, RestRequest("POST", _of(session_id, "prompt"), body, key=key)
        )

    async def messages(
        self, session_id: str, *, limit: int = _MESSAGES, newest: bool = False
    ) -> list[Message]:
        """What was said, oldest first; `newest`: of more than the limit the last, not the first."""
        query = {"limit": str(limit)} | ({"newest": "true"} if newest else {})
        request = RestRequest("GET", _of(session_id, "messages"), query=query)
        return (await self._rest.call(MessageList, request)).messages

    async def cancel_turn(
        self, session_id: str, worker_id: str | None = None, *, key: str | None = None
    ) -> None:
        body = {} if worker_id is None else {"workerId": worker_id}
        await self._rest.order(RestRequest("POST", _of(session_id, "cancel"), body, key=key))

    async def set_model(self, session_id: str, worker_id: str, model_id: str) -> None:
        """Asks an agent for a model; an event says when it has it, or what it said instead."""
        path = _of(session_id, "workers", worker_id, "model")
        await self._rest.order(RestRequest("PUT", path, {"modelId": model_id}))

    async def set_mode(self, session_id: str, worker_id: str, mode_id: str) -> None:
        """The same for a mode."""
        path = _of(session_id, "workers", worker_id, "mode")
        await self._rest.order(RestRequest("PUT", path, {"modeId": mode_id}))

    async def permissions(self, session_id: str) -> list[Permission]:
        """What is open, oldest first."""
        answer = await self._rest.call(PermissionList, RestRequest("GET", _of(session_id, "permissions")))
        return answer.permissions

    async def answer_permission(
        self, session_id: str, permission_id: str, option_id: str, *, key: str | None = None
    ) -> None:
        path = _of(session_id, "permissions", permission_id)
        await self._rest.order(RestRequest("POST", path, {"optionId": option_id}, key=key))

    async def questions(self, session_id: str) -> list[Question]:
        """What is open, oldest first."""
        return (
            await self._rest.call(QuestionList, RestRequest("GET", _of(session_id, "questions")))
        ).questions

    async def answer_question(
        self,
        session_id: str,
        question_id: str,
        action: str,
        content: dict[str, Any] | None = None,
        *,
        key: str | None = None,
    ) -> None:
        body = {"action": action, "content": content}
        await self._rest.order(RestRequest("POST", _of(session_id, "questions", question_id), body, key=key))

    async def queue(self, session_id: str) -> Queue:
        return await self._rest.call(Queue, RestRequest("GET", _of(session_id, "queue")))

    async def enqueue(
        self,
        session_id: str,
        message: str,
        *,
        image_ids: Iterable[str] = (),
        title: str | None = None,
        scheduled_time: datetime | None = None,
        key: str | None = None,
    ) -> QueueItem:
        """One more message; a `scheduled_time` (with its zone) is when it may be sent at the earliest."""
        body = {
            "message": message,
            "image_ids": list(image_ids),
            "title": title,
            "scheduled_time": scheduled_time,
        }
        return await self._rest.call(QueueItem, RestRequest("POST", _of(session_id, "queue"), body, key=key))

    async def edit_queued(self, session_id: str, message_id: str, changes: Mapping[str, Any]) -> QueueItem:
        """`message`, `title`, `scheduled_time` (a time with its zone): what is left out stays."""
        path = _of(session_id, "queue", message_id)
        return await self._rest.call(QueueItem, RestRequest("PATCH", path, dict(changes)))

    async def remove_queued(self, session_id: str, message_id: str) -> None:
        await self._rest.order(RestRequest("DELETE", _of(session_id, "queue", message_id)))

    async def clear_queue(self, session_id: str) -> None:
        await self._rest.order(RestRequest("DELETE", _of(session_id, "queue")))

    async def pause_queue(self, session_id: str) -> None:
        await self._rest.order(RestRequest("POST", _of(session_id, "queue", "pause"), {}))

    async def resume_queue(self, session_id: str) -> None:
        await self._rest.order(RestRequest("POST", _of(session_id, "queue", "resume"), {}))

    async def send_now(self, session_id: str, message_id: str) -> None:
        """A queued message goes before all others."""
        await self._rest.order(RestRequest("POST", _of(session_id, "queue", message_id, "send-now"), {}))


def _of(session_id: str, *parts: str) -> str:
    return "/".join(("/api/sessions", *(quote(part, safe="") for part in (session_id, *parts))))
