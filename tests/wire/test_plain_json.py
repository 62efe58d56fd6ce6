"""Facts with only text and integers take a fast path, which gives the same bytes as the general one."""

from typing import Any, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

import bullpen.main
from bullpen.domain.conversation import AgentMessage, UserEcho, UserPrompt
from bullpen.domain.events import (
    FACTS,
    DisconnectPolicy,
    Event,
    Fact,
    Int64,
    Run,
    SessionType,
    WindowSide,
    WorkerReady,
    read_fact,
)
from bullpen.log.entries import storable_entry
from bullpen.wire.json import storable
from bullpen.wire.plain_json import is_plain, plain_json

assert bullpen.main  # its import registers all facts

any_text = st.text(st.characters(exclude_categories=()))  # with surrogates and NUL
FIELDS: dict[Any, st.SearchStrategy[Any]] = {str: any_text, str | None: st.none() | any_text}


BOUNDED: dict[Any, st.SearchStrategy[Any]] = {
    Run: st.integers(1, 2**31 - 1),
    WindowSide: st.integers(1, 2**16 - 1),
    SessionType: st.sampled_from(["worktree", "quick"]),
    DisconnectPolicy: st.sampled_from(["keep", "terminate"]),
    DisconnectPolicy | None: st.sampled_from([None, "keep", "terminate"]),
    Int64 | None: st.none() | st.integers(-(2**63), 2**63 - 1),
}


class Tree(Struct):
    name: str
    children: list["Tree"] = []


class Measured(Struct):
    value: float


def facts(kind: type[Fact]) -> st.SearchStrategy[Fact]:
    """Return a strategy for facts of this kind, with any text in their fields."""
    hints = get_type_hints(kind, include_extras=True)
    return st.builds(kind, **{name: _values(hints[name]) for name in kind.__struct_fields__})


def _values(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for a field; bounded integers stay in their bounds, which a struct does not check."""
    if hint in BOUNDED:
        return BOUNDED[hint]
    return FIELDS.get(hint, st.from_type(hint))


OURS = [kind for _, kind in sorted(FACTS.items()) if kind.__module__.startswith("bullpen.")]
PLAIN = [kind for kind in OURS if is_plain(kind)]


@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.type)
@given(data=st.data())
def test_the_fast_path_gives_the_same_bytes_as_the_general_one(kind: type[Fact], data: st.DataObject) -> None:
    fact = data.draw(facts(kind))
    kept, general = storable(fact.to_data())
    unchanged = kept == fact.to_data() and b"\\u0000" not in general
    assert plain_json(fact) == (general if unchanged else None)
    stored = storable_entry(Event(1, 1, fact)).event.fact
    assert stored == read_fact(fact.type, msgspec.json.decode(general))


def test_the_most_frequent_facts_take_the_fast_path() -> None:
    assert {AgentMessage, UserPrompt, WorkerReady} <= {*PLAIN}
    message = AgentMessage(text="naïve ☃ 😀", partial=True)
    assert plain_json(message) == b'{"text":"na\xc3\xafve \xe2\x98\x83 \xf0\x9f\x98\x80","partial":true}'
    assert plain_json(UserPrompt(text="do it", prompt_id="p1")) is not None
    assert plain_json(WorkerReady(pid=None)) == b'{"pid":null}'


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_text_that_a_database_refuses_takes_the_general_path(text: str) -> None:
    assert plain_json(AgentMessage(text=text, partial=False)) is None
    kept = storable_entry(Event(1, 1, AgentMessage(text=text, partial=False), role=text))
    assert kept.event.fact.to_data()["text"] == kept.event.role != text
    assert b"\\u0000" not in kept.data


@pytest.mark.parametrize(
    "open_ended", [UserEcho(content=float("nan")), Tree("a", [Tree("b")]), Measured(1.0)], ids=repr
)
def test_a_struct_with_other_types_takes_the_general_path(open_ended: Struct) -> None:
    assert plain_json(open_ended) is None
