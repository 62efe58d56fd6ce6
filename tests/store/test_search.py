"""Full-text search over events and terminals: newest first, on SQLite and PostgreSQL."""

import pytest

from bullpen.domain.conversation import AgentMessage, ToolCall, TurnEnd, UserPrompt
from bullpen.domain.errors import Invalid
from bullpen.domain.events import Draft, Fact, SessionChanged, WorkerSpawning
from bullpen.domain.searching import TERMINAL_OUTPUT, SearchDocument
from bullpen.domain.snapshot import Snapshot
from bullpen.store.append import Append
from bullpen.store.events import EventStore
from bullpen.store.search import SearchFilters, SearchHit, add_documents, read_next, search, sessions_to_index
from bullpen.store.search_terminals import (
    MAX_INDEXED_BYTES,
    IndexedOffset,
    PrintedText,
    PrintingWorker,
    add_terminal_text,
    read_indexed_offsets,
    workers_to_index,
)
from support.sample_events import SESSION_START, append_to


def start_session(session_id: str, *facts: Fact) -> Append:
    worker = f"w-{session_id}"
    spawning = WorkerSpawning(worker_type="agent", name="Demo", run=1, workspace="/srv/x", agent_id="demo")
    drafts = [
        Draft(SESSION_START),
        Draft(spawning, worker, "demo"),
        *(Draft(fact, worker, "demo") for fact in facts),
    ]
    return append_to(Snapshot(id=session_id), *drafts)


def continue_session(append: Append, *facts: Fact) -> Append:
    worker = f"w-{append.snapshot.id}"
    return append_to(append.snapshot, *(Draft(fact, worker, "demo") for fact in facts))


async def index(store: EventStore) -> None:
    """Index all sessions completely, as sessions/indexing.py does."""
    for session_id in await store.database.read(sessions_to_index):
        while True:
            after, reading = await store.database.read(lambda c, id=session_id: read_next(c, id))  # type: ignore[misc]
            if reading.until <= after:
                break
            await store.database.write(
                lambda c, id=session_id, reading=reading: add_documents(c, id, reading)  # type: ignore[misc]
            )


async def find(store: EventStore, q: str, limit: int = 20, **filters: str | int) -> list[SearchHit]:
    return await store.database.read(lambda c: search(c, q, SearchFilters(**filters), limit))  # type: ignore[arg-type]


async def found_seqs(store: EventStore, q: str, **filters: str | int) -> list[tuple[str, int]]:
    return [(each.session_id, each.seq) for each in await find(store, q, **filters)]  # type: ignore[arg-type]


def prompt(text: str) -> UserPrompt:
    return UserPrompt(text=text, prompt_id=text)


async def test_the_newest_hit_is_first_and_names_its_session_and_event(store: EventStore) -> None:
    await store.commit(start_session("a", prompt("fix the flaky test"), prompt("thanks")))
    await index(store)
    await store.commit(start_session("b", prompt("another FLAKY one")))
    await index(store)
    newest, oldest = await find(store, "flaky")
    assert (newest.session_id, newest.seq, newest.role, newest.agent_id) == ("b", 3, "user", "demo")
    assert (oldest.session_id, oldest.seq, oldest.snippet) == ("a", 3, "fix the flaky test")
    assert await found_seqs(store, "flaky test") == [("a", 3)]
    assert [each.seq for each in await find(store, "flaky", limit=1)] == [3]


async def test_a_message_in_several_events_is_found_at_its_first_event(store: EventStore) -> None:
    first = start_session("a", AgentMessage(text="the mig", partial=True), prompt("meanwhile"))
    await store.commit(first)
    await index(store)
    assert await found_seqs(store, "meanwhile") == [("a", 4)]
    await store.commit(continue_session(first, AgentMessage(text="ration is done", partial=False)))
    await index(store)
    assert await found_seqs(store, "migration done") == [("a", 3)]
    assert await found_seqs(store, "meanwhile") == [("a", 4)]  # it was read twice and is indexed once
    assert await store.database.read(sessions_to_index) == []


async def test_tool_calls_and_titles_are_found_and_can_be_filtered(store: EventStore) -> None:
    call = ToolCall(call={"toolCallId": "1", "title": "Run", "rawInput": {"command": "pytest needle"}})
    await store.commit(start_session("a", call, SessionChanged(title="needle hunt"), prompt("needle")))
    await index(store)
    assert await found_seqs(store, "needle") == [("a", 5), ("a", 4), ("a", 3)]
    assert await found_seqs(store, "needle", role="title") == [("a", 4)]
    assert await found_seqs(store, "needle", type="tool_call") == [("a", 3)]
    assert await found_seqs(store, "needle", agent_id="demo", role="user") == [("a", 5)]
    assert await found_seqs(store, "needle", agent_id="other") == []
    assert await found_seqs(store, "needle", repo_id="none") == []
    assert await found_seqs(store, "needle", after=1_700_000_000_004) == [("a", 5)]
    assert await found_seqs(store, "needle", before=1_700_000_000_004) == [("a", 3)]


async def test_a_purge_removes_the_search_documents_of_a_session(store: EventStore) -> None:
    await store.commit(start_session("a", prompt("secret word")))
    await store.commit(start_session("b", prompt("secret too")))
    await index(store)
    await store.purge("a")
    assert await found_seqs(store, "secret") == [("b", 3)]
    await index(store)
    assert await found_seqs(store, "secret") == [("b", 3)]


async def test_an_unfinished_message_is_found_when_its_turn_has_ended(store: EventStore) -> None:
    first = start_session("a", AgentMessage(text="an unfinished", partial=True))
    await store.commit(first)
    await index(store)
    assert await found_seqs(store, "unfinished") == []
    await store.commit(continue_session(first, TurnEnd(stop_reason="error")))
    await index(store)
    assert await found_seqs(store, "unfinished") == [("a", 3)]


def printed(offset: int, text: str, run: int = 1) -> SearchDocument:
    return SearchDocument(
        seq=0,
        type=TERMINAL_OUTPUT,
        role=TERMINAL_OUTPUT,
        timestamp=1_700_000_000_002,
        text=text,
        worker_id="w-a",
        run=run,
        offset=offset,
    )


async def index_output(store: EventStore, mark: IndexedOffset, *documents: SearchDocument) -> None:
    worker = PrintingWorker(worker_id="w-a", session_id="a", run=mark.run, alive=True)
    await store.database.write(lambda c: add_terminal_text(c, [PrintedText(worker, list(documents), mark)]))


async def test_output_of_a_terminal_is_found_with_its_offset_in_the_recording(store: EventStore) -> None:
    await store.commit(start_session("a", prompt("run the needle")))
    await index(store)
    await index_output(
        store, IndexedOffset(1, 200), printed(0, "no"), printed(100, "a needle"), printed(150, "needles")
    )
    (found,) = await find(store, "needle", role=TERMINAL_OUTPUT)
    assert (found.worker_id, found.run, found.offset, found.type) == ("w-a", 1, 100, TERMINAL_OUTPUT)
    assert 1 <= found.seq <= 3
    assert len(await find(store, "needle")) == 2
    assert await store.database.read(lambda c: read_indexed_offsets(c, ["w-a", "w-b"])) == {
        "w-a": IndexedOffset(1, 200),
        "w-b": IndexedOffset(),
    }


async def test_only_the_newest_output_of_a_long_run_is_indexed(store: EventStore) -> None:
    await store.commit(start_session("a"))
    await index_output(store, IndexedOffset(1, 200), printed(100, "old needle"))
    await index_output(
        store, IndexedOffset(1, MAX_INDEXED_BYTES + 500), printed(MAX_INDEXED_BYTES + 300, "new needle")
    )
    await index_output(store, IndexedOffset(2, 300), printed(200, "next needle", run=2))
    found = await find(store, "needle")
    assert [(each.run, each.offset) for each in found] == [(2, 200), (1, MAX_INDEXED_BYTES + 300)]


async def test_a_terminal_is_indexed_until_its_run_is_over(store: EventStore) -> None:
    terminal = WorkerSpawning(worker_type="terminal", name="Terminal", run=1, workspace="/srv/x")
    await store.commit(append_to(Snapshot(id="a"), Draft(SESSION_START), Draft(terminal, "w-a", "terminal")))
    (waiting,) = await store.database.read(workers_to_index)
    assert (waiting.worker_id, waiting.run, waiting.alive) == ("w-a", 1, True)
    await index_output(store, IndexedOffset(1, 200, over=True))
    assert await store.database.read(workers_to_index) == []


async def test_a_purge_removes_the_indexed_output_of_terminals(store: EventStore) -> None:
    await store.commit(start_session("a"))
    await index_output(store, IndexedOffset(1, 200), printed(100, "needle"))
    await store.purge("a")
    await index_output(
        store, IndexedOffset(1, 300), printed(200, "needle")
    )  # read before the purge, written after it
    assert await find(store, "needle") == []


@pytest.mark.parametrize("q", ["", "  ", '"', "***", "-"])
async def test_a_query_without_a_word_is_refused(store: EventStore, q: str) -> None:
    with pytest.raises(Invalid, match="at least one word"):
        await find(store, q)


@pytest.mark.parametrize(
    "q", ['needle"', "needle*", "(needle", "needle' OR 1=1 --", "NEAR(needle)", "needle:x"]
)
async def test_operators_in_a_query_are_treated_as_words(store: EventStore, q: str) -> None:
    await store.commit(start_session("a", prompt("a needle, or 1=1, near: x")))
    await index(store)
    assert await found_seqs(store, q) == [("a", 3)]
