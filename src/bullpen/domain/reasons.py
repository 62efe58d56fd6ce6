"""Why something ended, in words for a person; events and JSON keep the words of the protocol.

`ui/src/state/reasons.ts` is its twin in the page; both pass `tests/golden/words/reasons.json`.
"""

BY_A_PERSON = "ended by a person"

_END = {  # of a session or a worker
    "user_request": BY_A_PERSON,
    "user requested": BY_A_PERSON,  # of a worker, as the relay says it
    "cancelled": BY_A_PERSON,
    "last_disconnect": "its last viewer left",
    "idle_timeout": "it was idle for too long",
    "error": "it failed",
    "replaced": "another took its role",
}
_TURN = {
    "end_turn": "the turn is over",
    "max_tokens": "it has used all its tokens",
    "max_turn_requests": "it has made all the requests a turn may make",
    "refusal": "it refuses to go on",
    "error": "it failed",
    "unknown": "the agent did not say why",
}


def why_ended(reason: str | None) -> str:
    """Of a session or a worker."""
    return _END.get(reason or "", spoken(reason))


def why_turn_ended(stop_reason: str | None) -> str:
    """Agents have stop reasons of their own too."""
    return _TURN.get(stop_reason or "", spoken(stop_reason))


def how_session_ended(status: str, reason: str | None) -> str:
    """The same as a sentence of its own."""
    return f"the session is {status} ({why_ended(reason)})" if status != "error" else "the session failed"


def how_worker_ended(reason: str | None) -> str:
    why = why_ended(reason)
    return why if why == BY_A_PERSON else f"ended: {why}"


def spoken(word: str | None) -> str:
    """A word of a protocol that has no other."""
    return (word or "unknown").replace("_", " ")
