"""The search documents of events, and the seq up to which events need not be read again."""

from bullpen.domain.conversation import (
    AgentMessage,
    AgentThought,
    Plan,
    ToolCall,
    ToolCallUpdate,
    TurnEnd,
    UserPrompt,
)
from bullpen.domain.events import (
    Error,
    Event,
    Fact,
    SessionChanged,
    SessionStart,
    WorkerExited,
    WorkerFailed,
    WorkerReady,
    WorkerTerminated,
)
from bullpen.domain.searching import MAX_DOCUMENT_LENGTH, MAX_MESSAGE_EVENTS, SearchDocument, read_documents


def said(text: str, partial: bool = True) -> AgentMessage:
    return AgentMessage(text=text, partial=partial)


def events(*facts: Fact | tuple[str, Fact]) -> list[Event]:
    """Return events; event n happened in second n, of worker w unless another worker is named."""
    pairs = [fact if isinstance(fact, tuple) else ("w", fact) for fact in facts]
    return [Event(seq, seq * 1000, fact, worker) for seq, (worker, fact) in enumerate(pairs, 1)]


def texts(*facts: Fact | tuple[str, Fact], impatient: bool = False) -> tuple[list[tuple[int, str]], int]:
    reading = read_documents(events(*facts), impatient)
    return [(each.seq, each.text) for each in reading.documents], reading.until


def test_the_document_of_each_kind_of_event_has_the_role_of_its_author() -> None:
    call = {"title": "ls", "rawInput": {"a": ["x", {"b": "y"}]}, "kind": "hidden", "content": ["z", 5]}
    more = {"rawOutput": "out", "locations": [{"path": "/a"}]}
    facts: list[Fact] = [
        SessionStart(session_type="quick", location_path="/", title="first"),
        SessionChanged(title="second"),
        UserPrompt(text=" hello\n", prompt_id="p"),
        said("answer", partial=False),
        AgentThought(text="thought", partial=False),
        ToolCall(call=call),
        ToolCallUpdate(call=more),
        Plan(entries=[{"content": "step", "status": "done"}]),
        Error(message="broke", detail="here"),
        Error(message="broke"),
        WorkerFailed(error="failed", stderr="there"),
        WorkerFailed(error="failed"),
    ]
    found = [(each.type, each.role, each.text) for each in read_documents(events(*facts)).documents]
    assert found == [
        ("session_start", "title", "first"),
        ("session_changed", "title", "second"),
        ("user_prompt", "user", "hello"),
        ("agent_message", "agent", "answer"),
        ("agent_thought", "agent", "thought"),
        ("tool_call", "system", "ls x y z"),
        ("tool_call_update", "system", "out /a"),
        ("plan", "system", "step done"),
        ("error", "system", "broke here"),
        ("error", "system", "broke"),
        ("worker_failed", "system", "failed there"),
        ("worker_failed", "system", "failed"),
    ]


def test_a_document_has_the_seq_and_time_of_its_first_event() -> None:
    (document,) = read_documents(events(WorkerReady(), said("a"), said("b", partial=False))).documents
    expected = SearchDocument(
        seq=2, type="agent_message", role="agent", timestamp=2000, text="ab", worker_id="w"
    )
    assert document == expected


def test_events_without_text_are_read_and_give_no_document() -> None:
    silent = (
        WorkerReady(),
        SessionChanged(on_last_disconnect="keep"),
        said(" ", partial=False),
        TurnEnd(stop_reason="x"),
    )
    assert texts(*silent) == ([], 4)
    assert texts() == ([], 0)


def test_an_open_message_is_read_again() -> None:
    assert texts(WorkerReady(), said("a"), said("b")) == ([], 1)
    thinking = AgentThought(text="t", partial=True)
    assert texts(said("a"), thinking, said("b", partial=False)) == ([(1, "ab")], 1)
    assert texts(thinking, said("a"), AgentThought(text="", partial=False)) == ([(1, "t")], 1)


def test_impatient_reading_takes_open_messages() -> None:
    assert texts(said("a"), ("v", said("b")), WorkerReady(), impatient=True) == ([(1, "a"), (2, "b")], 3)


def test_the_end_of_a_turn_or_worker_ends_its_messages_and_no_others() -> None:
    for end in (
        TurnEnd(stop_reason="x"),
        WorkerExited(),
        WorkerFailed(error=""),
        WorkerTerminated(reason="x"),
    ):
        assert texts(said("a"), ("v", said("b")), end) == ([(1, "a")], 1)
    both = (said("a"), AgentThought(text="t", partial=True), TurnEnd(stop_reason="x"))
    assert texts(*both) == ([(1, "a"), (2, "t")], 3)


def test_a_very_long_message_is_indexed_up_to_its_limit() -> None:
    pieces = [said("x")] * MAX_MESSAGE_EVENTS
    assert texts(*pieces[1:]) == ([], 0)
    assert texts(*pieces) == ([(1, "x" * MAX_MESSAGE_EVENTS)], MAX_MESSAGE_EVENTS)
    ((_, text),) = texts(UserPrompt(text="y" * (MAX_DOCUMENT_LENGTH + 1), prompt_id="p"))[0]
    assert len(text) == MAX_DOCUMENT_LENGTH
