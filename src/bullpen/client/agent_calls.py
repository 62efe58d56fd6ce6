"""Provide the client methods for agents: prompts, permissions, questions, models, modes and options."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from .conversation_shapes import (
    Message,
    MessageList,
    Permission,
    PermissionList,
    PromptResult,
    PromptSource,
    Question,
    QuestionList,
)
from .rest import RestClient, RestRequest
from .shapes import Worker

_MAX_MESSAGES = 10_000


class AgentCalls:
    """The methods of `Client` that send requests about the agents of a session."""

    _rest: RestClient

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
        source: PromptSource | None = None,
        key: str | None = None,
    ) -> PromptResult:
        """Send a prompt to an agent. Return once the server has stored it.

        With `source`, the prompt includes the last answer of another worker of the session, or the
        changes in its workspace.
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

    async def set_option(self, session_id: str, worker_id: str, option_id: str, value: str | bool) -> None:
        """Ask an agent to set an option. Its answer arrives as an event of type `request_answered`."""
        path = _session_path(session_id, "workers", worker_id, "options", option_id)
        await self._rest.send(RestRequest("PUT", path, {"value": value}))

    async def log_in_agent(self, session_id: str, worker_id: str, *, key: str | None = None) -> Worker:
        """Start the login command of an agent in a terminal, and return the terminal."""
        path = _session_path(session_id, "workers", worker_id, "login")
        return await self._rest.call(Worker, RestRequest("POST", path, {}, key=key))

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


def _session_path(session_id: str, *parts: str) -> str:
    """Return the URL path of a resource below a session."""
    return "/".join(("/api/sessions", *(quote(part, safe="") for part in (session_id, *parts))))
