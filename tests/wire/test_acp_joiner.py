"""Text is joined, never lost or reordered, and never consumed before it is told."""

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


def test_text_waits_a_moment_and_is_told_in_one_piece() -> None:
    joiner = ChunkJoiner()
    assert joiner.add(TextChunk("agent_message", "a"), line(0, 10), 1.0) == []
    assert joiner.add(TextChunk("agent_message", "b"), line(10, 20), 1.01) == []
    assert joiner.deadline == 1.0 + MAX_DELAY_SECONDS
    assert joiner.take_due(1.0 + MAX_DELAY_SECONDS / 2) == []
    assert joiner.take_due(1.0 + MAX_DELAY_SECONDS) == [message("ab", partial=True)]
    assert joiner.deadline is None


def test_much_text_does_not_wait() -> None:
    joiner = ChunkJoiner()
    assert joiner.add(TextChunk("agent_message", "x" * (MAX_HELD_CHARS - 1)), line(0, 10), 1.0) == []
    assert joiner.add(TextChunk("agent_message", "y"), line(10, 20), 1.0) == [
        message("x" * (MAX_HELD_CHARS - 1) + "y", partial=True)
    ]


def test_nothing_is_consumed_while_text_waits() -> None:
    joiner = ChunkJoiner()
    assert joiner.consumed_offset(5) == 5
    joiner.add(TextChunk("agent_message", "a"), line(5, 20), 1.0)
    joiner.add(TextChunk("agent_message", "b"), line(20, 40), 1.0)
    assert joiner.consumed_offset(40) == 5
    joiner.take_due(2.0)
    assert joiner.consumed_offset(40) == 40


def test_another_message_ends_the_one_before_and_only_that_is_consumed() -> None:
    joiner = ChunkJoiner()
    joiner.add(TextChunk("agent_message", "a", "m1"), line(0, 10), 1.0)
    told = joiner.add(TextChunk("agent_message", "b", "m2"), line(10, 20), 1.0)
    assert told == [message("a", partial=False, message_id="m1")]
    assert joiner.consumed_offset(20) == 10


def test_a_thought_and_a_message_are_two_blocks() -> None:
    joiner = ChunkJoiner()
    joiner.add(TextChunk("agent_thought", "hm"), line(0, 10), 1.0)
    told = joiner.add(TextChunk("agent_message", "so"), line(10, 20), 1.0)
    assert told == [AgentThought(text="hm", partial=False)]
    assert joiner.flush(closes=True) == [message("so", partial=False)]


def test_text_without_a_name_belongs_to_what_stands_before_it() -> None:
    joiner = ChunkJoiner()
    joiner.add(TextChunk("agent_message", "a", "m1"), line(0, 10), 1.0)
    assert joiner.add(TextChunk("agent_message", "b"), line(10, 20), 1.0) == []
    assert joiner.flush(closes=True) == [message("ab", partial=False, message_id="m1")]


def test_something_else_lets_the_text_go_first_and_leaves_the_block_open() -> None:
    joiner = ChunkJoiner()
    joiner.add(TextChunk("agent_message", "a"), line(0, 10), 1.0)
    assert joiner.flush(closes=False) == [message("a", partial=True)]
    assert joiner.flush(closes=False) == []
    assert joiner.flush(closes=True) == [message("", partial=False)]
    assert joiner.flush(closes=True) == []


def test_a_new_process_ends_the_block_the_old_one_had_open() -> None:
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
def test_every_letter_is_told_once_in_order_and_every_block_ends(
    steps: list[tuple[str, str, str | None] | str],
) -> None:
    joiner, now, at = ChunkJoiner(), 0.0, 0
    told: list[Text] = []
    said: list[tuple[str, str]] = []
    for step in steps:
        match step:
            case "closes" | "interrupts":
                told += joiner.flush(closes=step == "closes")
            case "waits":
                now += MAX_DELAY_SECONDS
                told += joiner.take_due(now)
            case (str(kind), str(text), message_id):
                said.append((kind, text))
                told += joiner.add(TextChunk(kind, text, message_id), line(at, at + 1), now)
                at += 1
        handed_out = sum(len(fact.text) for fact in told)
        consumed = joiner.consumed_offset(at)
        assert sum(len(text) for _, text in said[:consumed]) == handed_out
    told += joiner.flush(closes=True)
    for kind in ("agent_message", "agent_thought"):
        assert "".join(f.text for f in told if f.type == kind) == "".join(t for k, t in said if k == kind)
    assert not told or not told[-1].partial
    for before, after in pairwise(told):
        if (before.type, before.message_id) != (after.type, after.message_id):
            assert not before.partial
