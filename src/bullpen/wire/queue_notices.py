"""Build the notifications about the message queue that clients get, each from one event of the log.

They come in the order of the log, and a client that reconnects gets the missed ones.
"""

from typing import Any

from .json import decode

_MARK = b'"type":"queue_'  # checked before parsing: nearly no other event contains it
_NOTICES = {
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
_DETAIL_FIELDS = {"queue_titled": "title", "queue_moved": "direction"}


def queue_notice(session_id: str, wire: bytes) -> dict[str, Any] | None:
    """Return the queue notification for an event in JSON; None if the event is not about the queue."""
    event = decode(wire) if _MARK in wire else None
    if event is None or event["type"] not in _NOTICES:
        return None
    data = event["data"]
    about = {"session_id": session_id, "seq": event["seq"], "message_id": data.get("id")}
    detail = _DETAIL_FIELDS.get(event["type"])
    return {**_NOTICES[event["type"]], **about, **({detail: data[detail]} if detail else {})}
