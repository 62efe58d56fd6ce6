"""The fold of events to a session, tested with the golden files that the page's tests use as well."""

import json
from pathlib import Path

import pytest

from bullpen.domain.errors import Conflict, NotFound
from bullpen.domain.events import Error, Event, SessionStart, WorkerReady, WorkerSpawning
from bullpen.domain.snapshot import Snapshot, fold, fold_all
from bullpen.wire.browser import encode_event, read_event
from support import golden

GOLDEN = golden.paths()
START = SessionStart(session_type="quick", location_path="/", title="x")


def test_there_are_golden_files() -> None:
    assert len(GOLDEN) >= 10


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_events_of_a_golden_file_fold_to_its_snapshot(path: Path) -> None:
    case = json.loads(path.read_text())
    assert golden.expected_state(case) == {key: case[key] for key in ("snapshot", "page")}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_events_of_a_golden_file_are_encoded_as_they_were_read(path: Path) -> None:
    for wire in json.loads(path.read_text())["events"]:
        assert json.loads(encode_event(read_event(wire))) == wire


def test_an_event_out_of_order_is_refused() -> None:
    snapshot = fold(Snapshot(id="s"), Event(1, 0, START))
    for seq in (0, 1, 3):
        with pytest.raises(Conflict, match=f"event {seq} cannot follow 1"):
            fold(snapshot, Event(seq, 0, Error(message="x")))


def test_a_fact_about_an_unknown_worker_is_refused() -> None:
    snapshot = fold(Snapshot(id="s"), Event(1, 0, START))
    with pytest.raises(NotFound, match="no worker ghost"):
        fold(snapshot, Event(2, 0, WorkerReady(), "ghost", "shell"))


def test_a_fold_returns_a_new_snapshot_and_changes_none() -> None:
    first = fold(Snapshot(id="s"), Event(1, 10, START))
    spawning = WorkerSpawning(worker_type="terminal", name="Shell", run=1, workspace="/")
    second = fold(first, Event(2, 20, spawning, "w", "shell"))
    third = fold(second, Event(3, 30, WorkerReady(pid=1), "w", "shell"))
    assert (first.workers, first.last_seq, first.live) == ({}, 1, False)
    assert (second.worker("w").pid, third.worker("w").pid) == (None, 1)


def test_a_role_belongs_to_its_worker_that_is_not_terminated() -> None:
    case = json.loads(next(path for path in GOLDEN if path.stem == "role_reused").read_text())
    snapshot = fold_all(Snapshot(id=case["id"]), map(read_event, case["events"]))
    holder = snapshot.worker_in_role("shell")
    assert holder is not None
    assert holder.id == "w-2"
    assert snapshot.worker_in_role("nobody") is None


def test_a_session_has_the_fields_of_its_start() -> None:
    start = SessionStart(
        session_type="worktree",
        location_path="/srv",
        title="a title",
        repo_id="repo",
        worktree_id="tree",
        on_last_disconnect="terminate",
        founder="w",
        started_by="token",
    )
    assert fold(Snapshot(id="s"), Event(1, 10, start)) == Snapshot(
        id="s",
        type="worktree",
        title="a title",
        repo_id="repo",
        worktree_id="tree",
        location_path="/srv",
        on_last_disconnect="terminate",
        created_at=10,
        updated_at=10,
        last_seq=1,
        founder="w",
        started_by="token",
    )
