"""Events that fill databases and measure appends."""

from bullpen.domain.conversation import UserPrompt
from bullpen.domain.events import Draft, SessionStart

START = SessionStart(session_type="quick", location_path="/srv/x", title="one of many")


def draft(number: int) -> Draft:
    return Draft(UserPrompt(text=f"event number {number}, some text", prompt_id=f"p{number}"))
