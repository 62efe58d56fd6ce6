"""The notices of the message queue (R54), under its names: each is what an event of the log comes to.

They are made from events: they come in the order of the log, and who comes back gets those it has missed.
"""

from typing import Any

from .json import decode

_SIGN = b'"type":"queue_'  # nearly no event has it, and few of those are no event of the queue
_TOLD = {
    "queue_added": {"type": "queue_updated", "action": "added"},
    "queue_edited": {"type": "queue_updated", "action": "edited"},
    "queue_removed": {"type": "queue_updated", "action": "removed"},
    "queue_cleared": {"type": "queue_updated", "action": "cleared"},
    "queue_failed": {"type": "queue_updated", "action": "failed"},
    "queue_paused": {"type": "queue_updated", "action": "paused"},
    "queue_resumed": {"type": "queue_updated", "action": "resumed"},
    "queue_configured": {"type": "queue_updated", "action": "configured"},
    "queue_sending": {"type": "queue_message_sending"},
    "queue_sent": {"type": "queue_message_sent"},
    "queue_titled": {"type": "queue_message_titled"},
    "queue_moved": {"type": "queue_reordered"},
}
_DETAIL = {"queue_titled": "title", "queue_moved": "direction"}


def queue_notice(session_id: str, wire: bytes) -> dict[str, Any] | None:
    """What is told of an event, as it goes over the wire; None when it is not of the queue."""
    event = decode(wire) if _SIGN in wire else None
    if event is None or event["type"] not in _TOLD:
        return None
    data = event["data"]
    about = {"session_id": session_id, "seq": event["seq"], "message_id": data.get("id")}
    detail = _DETAIL.get(event["type"])
    return {**_TOLD[event["type"]], **about, **({detail: data[detail]} if detail else {})}
