"""The state of a session has the same symbol and word in the command line as in the page."""

import json
from typing import Any

import msgspec
import pytest

from bullpen.cli.text import display_state, state_label, state_symbol
from bullpen.client import Session
from support.golden import GOLDEN

STATES: list[dict[str, Any]] = json.loads((GOLDEN / "words" / "states.json").read_text())


@pytest.mark.parametrize("state", STATES, ids=lambda state: state["about"])
def test_a_session_has_the_same_symbol_and_word_as_in_the_page(state: dict[str, Any]) -> None:
    workers = [{"sessionId": "s", "name": "w", "role": "w", **worker} for worker in state["workers"]]
    body = {"id": "s", "type": "quick", "title": "t", "status": state["status"], "workers": workers}
    session = msgspec.convert(body, Session)
    word = display_state(session, state["unseen"])
    sign, colour = state_symbol(word)
    assert (sign, state_label(word, session), colour) == (state["sign"], state["word"], state["colour"])
