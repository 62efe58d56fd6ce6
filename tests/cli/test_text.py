"""The state of a session has the same symbol and word in the command line as in the page."""

import json

import msgspec
import pytest

from bullpen.cli.text import shown_state
from bullpen.client import Session
from support.golden import GOLDEN

STATES: list[dict[str, str]] = json.loads((GOLDEN / "words" / "states.json").read_text())


@pytest.mark.parametrize("state", STATES, ids=lambda state: state["about"])
def test_a_session_has_the_same_symbol_and_word_as_in_the_page(state: dict[str, str]) -> None:
    attention = {"need": state["need"], "why": "", "since": "2026-01-01T00:00:00.000Z"}
    body = {"id": "s", "type": "quick", "title": "t", "status": state["status"], "attention": attention}
    shown = shown_state(msgspec.convert(body, Session))
    assert (shown.symbol, shown.label, shown.colour) == (state["sign"], state["word"], state["colour"])
