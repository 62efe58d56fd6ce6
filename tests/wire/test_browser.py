"""The JSON of an event, a session and a worker, as clients get them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.domain.events import Error, Event, SessionStart, Unknown, WorkerSpawning
from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.wire.browser import encode_event, iso_time, session_json, worker_json

SESSION_FIELDS = [
    "id",
    "type",
    "title",
    "status",
    "agentStatus",
    "endReason",
    "metadata",
    "live",
    "repoId",
    "worktreeId",
    "locationPath",
    "onLastDisconnect",
    "startedBy",  # decision 0022
    "sandbox",
    "createdAt",
    "updatedAt",
    "lastSeq",
    "workers",
]
WORKER_FIELDS = [
    "id",
    "sessionId",
    "type",
    "name",
    "role",
    "agentId",
    "agentKind",
    "workspace",
    "filePath",
    "url",
    "owner",
    "state",
    "activity",
    "activityWhy",
    "activitySince",
    "status",
    "run",
    "pid",
    "exitCode",
    "signal",
    "error",
    "sandbox",
    "createdAt",
    "lastActiveAt",
]


def small_session() -> Snapshot:
    start = SessionStart(session_type="quick", location_path="/srv/x", title="X")
    spawning = WorkerSpawning(worker_type="terminal", name="Shell", run=1, workspace="/srv/x")
    return fold_all(Snapshot(id="s"), [Event(1, 1000, start), Event(2, 2500, spawning, "w", "shell")])


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (1_709_164_800_007, "2024-02-29T00:00:00.007Z"),
    ],
)
def test_times_are_iso_with_milliseconds_in_utc(ms: int, text: str) -> None:
    assert iso_time(ms) == text


def test_an_event_has_exactly_the_documented_fields() -> None:
    event = Event(7, 1_700_000_000_123, Error(message="no", detail=None), "w1", 'the "best"')
    assert json.loads(encode_event(event)) == {
        "seq": 7,
        "type": "error",
        "workerId": "w1",
        "role": 'the "best"',
        "timestamp": "2023-11-14T22:13:20.123Z",
        "data": {"message": "no", "detail": None},
    }


def test_a_fact_of_a_newer_version_is_sent_as_it_was_stored() -> None:
    event = Event(1, 0, Unknown(name="moon_landing", data={"by": ["Neil"]}))
    sent = json.loads(encode_event(event))
    assert (sent["type"], sent["data"]) == ("moon_landing", {"by": ["Neil"]})


@given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())))
def test_an_event_is_always_one_line_of_json(role: str, message: str) -> None:
    line = encode_event(Event(1, 0, Error(message=message), "w", role))
    assert b"\n" not in line
    assert set(json.loads(line)) == {"seq", "type", "workerId", "role", "timestamp", "data"}


def test_a_session_has_exactly_the_documented_fields() -> None:
    shape = session_json(small_session())
    assert list(shape) == SESSION_FIELDS
    assert shape["live"] is True
    assert shape["lastSeq"] == 2
    assert shape["createdAt"] == "1970-01-01T00:00:01.000Z"


def test_a_worker_has_exactly_the_documented_fields() -> None:
    shape = worker_json(small_session().worker("w"), "s")
    assert list(shape) == WORKER_FIELDS
    assert (shape["sessionId"], shape["state"], shape["status"]) == ("s", "spawning", "starting")


def test_a_session_contains_only_plain_json() -> None:
    shape = session_json(small_session())
    assert json.loads(json.dumps(shape)) == shape
