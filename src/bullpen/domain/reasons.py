"""Why a session or a turn ended, in words for a person; events and JSON keep the words of the protocol."""

_SESSION = {
    "user_request": "ended by a person",
    "cancelled": "ended by a person",
    "last_disconnect": "its last viewer left",
    "idle_timeout": "it was idle for too long",
    "error": "it failed",
}
_TURN = {  # as the page says it
    "end_turn": "the turn is over",
    "max_tokens": "it has used all its tokens",
    "max_turn_requests": "it has made all the requests a turn may make",
    "refusal": "it refuses to go on",
    "error": "it failed",
    "unknown": "the agent did not say why",
}


def why_session_ended(reason: str | None) -> str:
    return _SESSION.get(reason or "", spoken(reason))


def why_turn_ended(stop_reason: str | None) -> str:
    """Agents have stop reasons of their own too."""
    return _TURN.get(stop_reason or "", spoken(stop_reason))


def spoken(word: str | None) -> str:
    """A word of a protocol that has no other."""
    return (word or "unknown").replace("_", " ")
