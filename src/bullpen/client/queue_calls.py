"""Provide the client methods for the message queue of a session."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from .conversation_shapes import Queue, QueueItem, QueueSettings
from .rest import RestClient, RestRequest


class QueueCalls:
    """The methods of `Client` about messages that wait for an agent."""

    _rest: RestClient

    async def queue(self, session_id: str) -> Queue:
        """Return the messages that wait for an agent of the session, and whether the queue is paused."""
        return await self._rest.call(Queue, RestRequest("GET", _queue(session_id)))

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
        return await self._rest.call(QueueItem, RestRequest("POST", _queue(session_id), body, key=key))

    async def queued(self, session_id: str, message_id: str) -> QueueItem:
        """Return one message of the queue."""
        return await self._rest.call(QueueItem, RestRequest("GET", _queue(session_id, message_id)))

    async def edit_queued(self, session_id: str, message_id: str, changes: Mapping[str, Any]) -> QueueItem:
        """Change the `message`, `title` or `scheduled_time` of a queued message; other fields stay."""
        path = _queue(session_id, message_id)
        return await self._rest.call(QueueItem, RestRequest("PATCH", path, dict(changes)))

    async def move_queued(
        self, session_id: str, message_id: str, direction: Literal["up", "down"], *, key: str | None = None
    ) -> Queue:
        """Move a message one place up or down; at the end of the queue it stays."""
        path = _queue(session_id, message_id, "move")
        return await self._rest.call(Queue, RestRequest("POST", path, {"direction": direction}, key=key))

    async def remove_queued(self, session_id: str, message_id: str) -> None:
        """Remove a message from the queue."""
        await self._rest.send(RestRequest("DELETE", _queue(session_id, message_id)))

    async def send_now(self, session_id: str, message_id: str) -> None:
        """Send a queued message before all others."""
        await self._rest.send(RestRequest("POST", _queue(session_id, message_id, "send-now"), {}))

    async def clear_queue(self, session_id: str) -> None:
        """Remove all messages from the queue."""
        await self._rest.send(RestRequest("DELETE", _queue(session_id)))

    async def pause_queue(self, session_id: str) -> None:
        """Stop sending messages of the queue."""
        await self._rest.send(RestRequest("POST", _queue(session_id, "pause"), {}))

    async def resume_queue(self, session_id: str) -> None:
        """Continue to send the messages of the queue."""
        await self._rest.send(RestRequest("POST", _queue(session_id, "resume"), {}))

    async def queue_settings(self, session_id: str) -> QueueSettings:
        """Return the settings of the queue."""
        return await self._rest.call(QueueSettings, RestRequest("GET", _queue(session_id, "settings")))

    async def change_queue_settings(
        self,
        session_id: str,
        *,
        enabled: bool | None = None,
        delay_seconds: float | None = None,
        max_size: int | None = None,
        auto_generate_titles: bool | None = None,
        inherited: bool = False,
    ) -> QueueSettings:
        """Change settings of the queue; None leaves a setting as it is.

        `inherited` restores those of the repository or the server.
        """
        body = {
            "enabled": enabled,
            "delay_seconds": delay_seconds,
            "max_size": max_size,
            "auto_generate_titles": auto_generate_titles,
            "inherited": inherited,
        }
        return await self._rest.call(QueueSettings, RestRequest("PUT", _queue(session_id, "settings"), body))


def _queue(session_id: str, *parts: str) -> str:
    """Return the URL path of a session's queue, or of a part of it."""
    return "/".join(
        ("/api/sessions", quote(session_id, safe=""), "queue", *(quote(part, safe="") for part in parts))
    )
