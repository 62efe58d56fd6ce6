"""Describe to a user why a session, a worker or a turn ended. Events keep the reasons of the protocol.

`ui/src/state/reasons.ts` is the same for the page; both pass `tests/golden/words/reasons.json`.
"""

BY_A_PERSON = "ended by a person"

_END_REASONS = {  # of a session or a worker
    "user_request": BY_A_PERSON,
    "user requested": BY_A_PERSON,  # the relay's name for it
    "cancelled": BY_A_PERSON,
    "last_disconnect": "its last viewer left",
    "idle_timeout": "it was idle for too long",
    "error": "it failed",
    "replaced": "another took its role",
}
_STOP_REASONS = {
    "end_turn": "finished",
    "max_tokens": "it reached its token limit",
    "max_turn_requests": "it reached its limit of requests in one turn",
    "refusal": "it refused to continue",
    "error": "it failed",
    "unknown": "the agent gave no reason",
}


def end_reason_text(reason: str | None) -> str:
    """Return the text for why a session or a worker ended."""
    return _END_REASONS.get(reason or "", readable(reason))


def stop_reason_text(stop_reason: str | None) -> str:
    """Return the text for why a turn ended. Agents also have stop reasons of their own."""
    return _STOP_REASONS.get(stop_reason or "", readable(stop_reason))


def session_end_text(status: str, reason: str | None) -> str:
    """Return a sentence that says how and why a session ended."""
    if status == "error":
        return "the session failed"
    return f"the session is {status} ({end_reason_text(reason)})"


def worker_end_text(reason: str | None) -> str:
    """Return a phrase that says why a worker ended."""
    why = end_reason_text(reason)
    return why if why == BY_A_PERSON else f"ended: {why}"


def failure_text(name: str, error: str) -> str:
    """Return a failure with the name of the worker; errors of the server begin with "it"."""
    text = error.removeprefix("it ")
    return f"{name} {text}" if text != error else f"{name}: {error}"


def refusal_text(kind: str, target: str, program: str) -> str:
    """Return a sentence that says what the sandbox refused to a program."""
    verb = "reach" if kind == "host" else kind
    return f"{program or 'a program'} may not {verb} {target}"


def readable(word: str | None) -> str:
    """Return a protocol word as readable text, or "unknown" if there is none."""
    return (word or "unknown").replace("_", " ")
