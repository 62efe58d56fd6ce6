"""Facts of text and whole numbers take a short way into the log: it must say what the long one says."""

from typing import Any, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

import bullpen.main
from bullpen.domain.conversation import AgentMessage, UserEcho, UserPrompt
from bullpen.domain.events import FACTS, Event, Fact, Int64, Run, WindowSide, WorkerReady, read_fact
from bullpen.log.entries import storable_entry
from bullpen.wire.json import storable
from bullpen.wire.plain_json import is_plain, plain_json

assert bullpen.main  # all facts are there once everything is

any_text = st.text(st.characters(exclude_categories=()))  # with surrogates and NUL
FIELDS: dict[Any, st.SearchStrategy[Any]] = {str: any_text, str | None: st.none() | any_text}


BOUNDED: dict[Any, st.SearchStrategy[Any]] = {
    Run: st.integers(1, 2**31 - 1),
    WindowSide: st.integers(1, 2**16 - 1),
    Int64 | None: st.none() | st.integers(-(2**63), 2**63 - 1),
}


class Tree(Struct):
    name: str
    children: list["Tree"] = []


class Measured(Struct):
    value: float


def facts(kind: type[Fact]) -> st.SearchStrategy[Fact]:
    """Of any fields; text is any that can be said, however odd."""
    hints = get_type_hints(kind, include_extras=True)
    return st.builds(kind, **{name: _values(hints[name]) for name in kind.__struct_fields__})


def _values(hint: Any) -> st.SearchStrategy[Any]:
    """Of numbers with bounds only those within them: a struct does not check what it is made with."""
    if hint in BOUNDED:
        return BOUNDED[hint]
    return FIELDS.get(hint, st.from_type(hint))


OURS = [kind for _, kind in sorted(FACTS.items()) if kind.__module__.startswith("bullpen.")]
PLAIN = [kind for kind in OURS if is_plain(kind)]


@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.type)
@given(data=st.data())
def test_the_short_way_says_what_the_long_one_says(kind: type[Fact], data: st.DataObject) -> None:
    fact = data.draw(facts(kind))
    kept, long = storable(fact.to_data())
    as_said = kept == fact.to_data() and b"\\u0000" not in long
    assert plain_json(fact) == (long if as_said else None)
    stored = storable_entry(Event(1, 1, fact)).event.fact
    assert stored == read_fact(fact.type, msgspec.json.decode(long))


def test_what_is_said_most_often_takes_the_short_way() -> None:
    assert {AgentMessage, UserPrompt, WorkerReady} <= {*PLAIN}
    said = AgentMessage(text="naïve ☃ 😀", partial=True)
    assert plain_json(said) == b'{"text":"na\xc3\xafve \xe2\x98\x83 \xf0\x9f\x98\x80","partial":true}'
    assert plain_json(UserPrompt(text="do it", prompt_id="p1")) is not None
    assert plain_json(WorkerReady(pid=None)) == b'{"pid":null}'


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_text_no_database_takes_is_left_to_the_long_way(text: str) -> None:
    assert plain_json(AgentMessage(text=text, partial=False)) is None
    kept = storable_entry(Event(1, 1, AgentMessage(text=text, partial=False), role=text))
    assert kept.event.fact.to_data()["text"] == kept.event.role != text
    assert b"\\u0000" not in kept.data


@pytest.mark.parametrize(
    "open_ended", [UserEcho(content=float("nan")), Tree("a", [Tree("b")]), Measured(1.0)], ids=repr
)
def test_what_may_hold_anything_is_left_to_the_long_way(open_ended: Struct) -> None:
    assert plain_json(open_ended) is None
