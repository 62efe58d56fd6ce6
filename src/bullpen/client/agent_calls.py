"""Provide the client methods for agents: prompts, permissions, questions, models and the message queue."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from .conversation_shapes import (
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
from .rest import RestClient, RestRequest

_MAX_MESSAGES = 10_000


class AgentCalls:
    """The methods of `Client` that send requests about the agents of a session."""

    _rest: RestClient

    async def agents(self) -> list[Agent]:
        """Return every agent that is defined, installed or not."""
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
        """Send a prompt to an agent. Return once the server has stored it.

        `source` names another worker of the session as {"role": …} or {"workerId": …}. The prompt then
        includes that worker's last answer or, with {"what": "diff"}, the changes in its workspace.
        """
        optional = {"promptId": prompt_id, "workerId": worker_id, "role": role, "busy": busy, "from": source}
        body: dict[str, Any] = {"text": text, "imageIds": list(image_ids)}
        body |= {name: value for name, value in optional.items() if value is not None}
        return await self._rest.call(
            PromptResult, RestRequest("POST", _session_path(session_id, "prompt"), body, key=key)
        )

    async def messages(
        self, session_id: str, *, limit: int = _MAX_MESSAGES, newest: bool = False
    ) -> list[Message]:
        """Return the first `limit` messages of the conversation, or with `newest` the last; oldest first."""
        query = {"limit": str(limit)} | ({"newest": "true"} if newest else {})
        request = RestRequest("GET", _session_path(session_id, "messages"), query=query)
        return (await self._rest.call(MessageList, request)).messages

    async def cancel_turn(
        self, session_id: str, worker_id: str | None = None, *, key: str | None = None
    ) -> None:
        """Cancel the current turn of an agent, by default of the first agent of the session."""
        body = {} if worker_id is None else {"workerId": worker_id}
        await self._rest.send(RestRequest("POST", _session_path(session_id, "cancel"), body, key=key))

    async def set_model(self, session_id: str, worker_id: str, model_id: str) -> None:
        """Ask an agent to use a model. Its answer arrives as an event of type `request_answered`."""
        path = _session_path(session_id, "workers", worker_id, "model")
        await self._rest.send(RestRequest("PUT", path, {"modelId": model_id}))

    async def set_mode(self, session_id: str, worker_id: str, mode_id: str) -> None:
        """Ask an agent to use a mode. Its answer arrives as an event of type `request_answered`."""
        path = _session_path(session_id, "workers", worker_id, "mode")
        await self._rest.send(RestRequest("PUT", path, {"modeId": mode_id}))

    async def permissions(self, session_id: str) -> list[Permission]:
        """Return the permission requests that wait for an answer, oldest first."""
        answer = await self._rest.call(
            PermissionList, RestRequest("GET", _session_path(session_id, "permissions"))
        )
        return answer.permissions

    async def answer_permission(
        self, session_id: str, permission_id: str, option_id: str, *, key: str | None = None
    ) -> None:
        """Answer a permission request with one of its options."""
        path = _session_path(session_id, "permissions", permission_id)
        await self._rest.send(RestRequest("POST", path, {"optionId": option_id}, key=key))

    async def questions(self, session_id: str) -> list[Question]:
        """Return the questions that wait for an answer, oldest first."""
        return (
            await self._rest.call(QuestionList, RestRequest("GET", _session_path(session_id, "questions")))
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
        """Answer a question. `action` is accept (with the values of its form), decline or cancel."""
        body = {"action": action, "content": content}
        await self._rest.send(
            RestRequest("POST", _session_path(session_id, "questions", question_id), body, key=key)
        )

    async def queue(self, session_id: str) -> Queue:
        """Return the messages that wait for an agent of the session, and whether the queue is paused."""
        return await self._rest.call(Queue, RestRequest("GET", _session_path(session_id, "queue")))

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
        """Append a message to the queue; it is not sent before `scheduled_time`, which needs a time zone."""
        body = {
            "message": message,
            "image_ids": list(image_ids),
            "title": title,
            "scheduled_time": scheduled_time,
        }
        return await self._rest.call(
            QueueItem, RestRequest("POST", _session_path(session_id, "queue"), body, key=key)
        )

    async def edit_queued(self, session_id: str, message_id: str, changes: Mapping[str, Any]) -> QueueItem:
        """Change the `message`, `title` or `scheduled_time` of a queued message; other fields stay."""
        path = _session_path(session_id, "queue", message_id)
        return await self._rest.call(QueueItem, RestRequest("PATCH", path, dict(changes)))

    async def remove_queued(self, session_id: str, message_id: str) -> None:
        """Remove a message from the queue."""
        await self._rest.send(RestRequest("DELETE", _session_path(session_id, "queue", message_id)))

    async def clear_queue(self, session_id: str) -> None:
        """Remove all messages from the queue."""
        await self._rest.send(RestRequest("DELETE", _session_path(session_id, "queue")))

    async def pause_queue(self, session_id: str) -> None:
        """Stop sending messages of the queue."""
        await self._rest.send(RestRequest("POST", _session_path(session_id, "queue", "pause"), {}))

    async def resume_queue(self, session_id: str) -> None:
        """Continue to send the messages of the queue."""
        await self._rest.send(RestRequest("POST", _session_path(session_id, "queue", "resume"), {}))

    async def send_now(self, session_id: str, message_id: str) -> None:
        """Send a queued message before all others."""
        await self._rest.send(
            RestRequest("POST", _session_path(session_id, "queue", message_id, "send-now"), {})
        )


def _session_path(session_id: str, *parts: str) -> str:
    """Return the URL path of a resource below a session."""
    return "/".join(("/api/sessions", *(quote(part, safe="") for part in (session_id, *parts))))
