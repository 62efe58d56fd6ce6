"""Pieces of text are joined, never lost or reordered, and not consumed before they are emitted."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bullpen.domain.conversation import AgentMessage, AgentThought
from bullpen.domain.conversation_state import OpenTextBlock
from bullpen.wire.acp_joiner import MAX_DELAY_SECONDS, MAX_HELD_CHARS, ChunkJoiner, Text, TextChunk
from bullpen.wire.jsonrpc import Line


def line(start: int, end: int) -> Line:
    return Line(start=start, end=end)


def message(text: str, partial: bool, message_id: str | None = None) -> AgentMessage:
    return AgentMessage(text=text, partial=partial, message_id=message_id)


def test_text_is_held_for_the_maximum_delay_and_emitted_in_one_piece() -> None:
    joiner = ChunkJoiner()
    assert joiner.add(TextChunk("agent_message", "a"), line(0, 10), 1.0) == []
    assert joiner.add(TextChunk("agent_message", "b"), line(10, 20), 1.01) == []
    assert joiner.deadline == 1.0 + MAX_DELAY_SECONDS
    assert joiner.take_due(1.0 + MAX_DELAY_SECONDS / 2) == []
    assert joiner.take_due(1.0 + MAX_DELAY_SECONDS) == [message("ab", partial=True)]
    assert joiner.deadline is None


def test_text_of_the_maximum_length_is_emitted_at_once() -> None:
    joiner = ChunkJoiner()
    assert joiner.add(TextChunk("agent_message", "x" * (MAX_HELD_CHARS - 1)), line(0, 10), 1.0) == []
    assert joiner.add(TextChunk("agent_message", "y"), line(10, 20), 1.0) == [
        message("x" * (MAX_HELD_CHARS - 1) + "y", partial=True)
    ]


def test_held_text_is_not_consumed() -> None:
    joiner = ChunkJoiner()
    assert joiner.consumed_offset(5) == 5
    joiner.add(TextChunk("agent_message", "a"), line(5, 20), 1.0)
    joiner.add(TextChunk("agent_message", "b"), line(20, 40), 1.0)
    assert joiner.consumed_offset(40) == 5
    joiner.take_due(2.0)
    assert joiner.consumed_offset(40) == 40


def test_a_new_message_ends_the_previous_one_and_only_that_is_consumed() -> None:
    joiner = ChunkJoiner()
    joiner.add(TextChunk("agent_message", "a", "m1"), line(0, 10), 1.0)
    emitted = joiner.add(TextChunk("agent_message", "b", "m2"), line(10, 20), 1.0)
    assert emitted == [message("a", partial=False, message_id="m1")]
    assert joiner.consumed_offset(20) == 10


def test_a_thought_and_a_message_are_two_blocks() -> None:
    joiner = ChunkJoiner()
    joiner.add(TextChunk("agent_thought", "hm"), line(0, 10), 1.0)
    emitted = joiner.add(TextChunk("agent_message", "so"), line(10, 20), 1.0)
    assert emitted == [AgentThought(text="hm", partial=False)]
    assert joiner.flush(closes=True) == [message("so", partial=False)]


def test_text_without_an_id_belongs_to_the_message_before_it() -> None:
    joiner = ChunkJoiner()
    joiner.add(TextChunk("agent_message", "a", "m1"), line(0, 10), 1.0)
    assert joiner.add(TextChunk("agent_message", "b"), line(10, 20), 1.0) == []
    assert joiner.flush(closes=True) == [message("ab", partial=False, message_id="m1")]


def test_a_flush_emits_the_text_and_closes_the_block_only_if_asked() -> None:
    joiner = ChunkJoiner()
    joiner.add(TextChunk("agent_message", "a"), line(0, 10), 1.0)
    assert joiner.flush(closes=False) == [message("a", partial=True)]
    assert joiner.flush(closes=False) == []
    assert joiner.flush(closes=True) == [message("", partial=False)]
    assert joiner.flush(closes=True) == []


def test_a_new_joiner_continues_an_open_block() -> None:
    joiner = ChunkJoiner(OpenTextBlock("agent_thought", "m"))
    assert joiner.add(TextChunk("agent_thought", "more", "m"), line(0, 10), 1.0) == []
    assert joiner.flush(closes=True) == [AgentThought(text="more", partial=False, message_id="m")]


STEP = st.one_of(
    st.tuples(
        st.sampled_from(["agent_message", "agent_thought"]),
        st.text(min_size=1),
        st.sampled_from([None, "a", "b"]),
    ),
    st.sampled_from(["closes", "interrupts", "waits"]),
)


@given(steps=st.lists(STEP, max_size=30))
def test_every_character_is_emitted_once_in_order_and_every_block_ends(
    steps: list[tuple[str, str, str | None] | str],
) -> None:
    joiner, now, offset = ChunkJoiner(), 0.0, 0
    emitted: list[Text] = []
    added: list[tuple[str, str]] = []
    for step in steps:
        match step:
            case "closes" | "interrupts":
                emitted += joiner.flush(closes=step == "closes")
            case "waits":
                now += MAX_DELAY_SECONDS
                emitted += joiner.take_due(now)
            case (str(kind), str(text), message_id):
                added.append((kind, text))
                emitted += joiner.add(TextChunk(kind, text, message_id), line(offset, offset + 1), now)
                offset += 1
        emitted_length = sum(len(fact.text) for fact in emitted)
        consumed = joiner.consumed_offset(offset)
        assert sum(len(text) for _, text in added[:consumed]) == emitted_length
    emitted += joiner.flush(closes=True)
    for kind in ("agent_message", "agent_thought"):
        assert "".join(f.text for f in emitted if f.type == kind) == "".join(t for k, t in added if k == kind)
    assert not emitted or not emitted[-1].partial
    for before, after in pairwise(emitted):
        if (before.type, before.message_id) != (after.type, after.message_id):
            assert not before.partial
