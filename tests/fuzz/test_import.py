"""Mutated exports and sessions.json files are sent to a real server, which imports or refuses each."""

import io
import json
from typing import Any
from zipfile import ZipFile

from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from bullpen.domain.errors import BullpenError
from bullpen.log.zip_reader import ZipReader
from bullpen.wire.event_lines import event_line
from bullpen.wire.json import encode
from fuzz.conftest import FuzzedServer
from support import golden
from support.fuzzing import fuzz, mutated_bytes, mutated_json, replay
from web.test_hostile_zips import IMAGE, SESSION, SPOOL, WORKER, recording, zipped

READS = [
    *("", "/events", "/messages?limit=100", "/queue", "/permissions", "/questions", "/workers", "/timeline"),
    *("/timeline?at=1767225600000", "/timeline?at=0", "/export?format=zip", "/exportl"),
    *("/export?format=markdown", "/export?format=cast", "/export?format=zip&redact=1"),
    *(f"/workers/{WORKER}", f"/workers/{WORKER}/output", f"/workers/{WORKER}/output?format=cast", "/ports"),
]
LISTS = ["/api/sessions", "/api/inbox", "/api/usage", "/api/search?q=hello", "/metrics"]


def events_of(case: dict[str, Any]) -> list[Any]:
    """Return the events of a golden file; its first worker gets the id that has a spool."""
    text = json.dumps(case["events"]).replace('"w-1"', f'"{WORKER}"')
    events: list[Any] = json.loads(text)
    return events


EVENTS = [events_of(json.loads(path.read_text())) for path in golden.paths()]
EVENTS = [events for events in EVENTS if events]


@st.composite
def exports(draw: st.DrawFn) -> bytes:
    """Draw an export whose events, metadata or terminal files differ from those that a server writes."""
    files = recording()
    events = draw(mutated_json(EVENTS))
    events = events if isinstance(events, list) else [events]
    files["events.jsonl"] = b"".join(event_line(encode(event)) for event in events)
    metadata = {"format": 1, "id": SESSION, "lastSeq": len(events), "title": "x"}
    if draw(st.integers(0, 4)) == 0:
        metadata = draw(mutated_json([metadata], 1))
    files["metadata.json"] = encode(metadata)
    for name in (f"{SPOOL}.idx", f"{SPOOL}.bin", IMAGE):
        if draw(st.integers(0, 4)) == 0:
            files[name] = draw(mutated_bytes([files[name]], 2))
    return zipped(files)


def check_import(fuzzed: FuzzedServer, data: bytes) -> None:
    answer = fuzzed.call("PUT", f"/api/recordings/{SESSION}", content=data)
    assert answer.status_code in (201, 400), answer.text
    if answer.status_code == 201:
        try:
            for path in READS:
                fuzzed.call("GET", f"/api/sessions/{SESSION}{path}")
            for path in LISTS:
                fuzzed.call("GET", path)
            read_sockets(fuzzed)
        finally:
            fuzzed.call("DELETE", f"/api/sessions/{SESSION}?purge=true").raise_for_status()
    else:
        assert answer.json()["error"] == "invalid"
        assert fuzzed.call("GET", f"/api/sessions/{SESSION}").status_code == 404
    home = fuzzed.server.home
    assert not [*home.glob(".import-*"), *(home / "images").glob("*"), *(home / "spool").glob("*/*/*/*.bin")]
    fuzzed.check_log()


def read_sockets(fuzzed: FuzzedServer) -> None:
    """Follow the events of the session and view its terminal, as the page does."""
    for path in (f"/ws/session/{SESSION}", f"/ws/session/{SESSION}/worker/{WORKER}"):
        with fuzzed.socket(path) as ws:
            try:
                if "worker" not in path:
                    ws.send('{"type":"subscribe","after":0}')
                ws.recv(timeout=60)
            except ConnectionClosed as closed:
                assert closed.rcvd is not None
                assert closed.rcvd.code in (1008, 4404), closed


def test_exports_that_once_failed_are_imported_or_refused(fuzzed: FuzzedServer) -> None:
    replay("import", lambda data: check_import(fuzzed, data))


def test_mutated_exports_are_imported_or_refused(fuzzed: FuzzedServer) -> None:
    fuzz("import", exports(), lambda data: check_import(fuzzed, data), 40)


# -- the zip file itself ----------------------------------------------------------------------------------


def check_zip(data: bytes) -> None:
    """Unpack the file as the server does; Python's reader must read the same."""
    try:
        reader = ZipReader(io.BytesIO(data))
        files = {member.name: b"".join(reader.read(member)) for member in reader.members}
    except BullpenError:
        return
    with ZipFile(io.BytesIO(data)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == files


def test_zip_files_that_once_failed_are_read_or_refused() -> None:
    replay("zip", check_zip)


def test_mutated_zip_files_are_read_or_refused() -> None:
    whole = [zipped(recording()), zipped({"a": b"x" * 5000, "b": b""}), zipped({"a": b"abc"}, 0)]
    fuzz("zip", mutated_bytes(whole, 2), check_zip, 300)


# -- sessions.json ----------------------------------------------------------------------------------------

SAVED_WORKER = {"id": "w", "type": "terminal", "name": "shell", "pid": 1, "agentId": "claude-code-builtin"}
TIME = "2025-01-01T00:00:00.000Z"


def saved(path: str) -> list[Any]:
    new = {"id": "a", "type": "quick", "locationPath": path, "createdAt": TIME, "workers": [SAVED_WORKER]}
    old = {"id": "c", "worktreePath": path, "pid": 1, "createdAt": TIME, "repositoryId": "default"}
    return [[new], [old], [new | {"type": "worktree", "repositoryId": "r", "worktreeId": path}]]


def check_sessions(fuzzed: FuzzedServer, data: bytes) -> None:
    body = b'{"sessions":%b}' % data.replace(b"WORKSPACE", str(fuzzed.server.workspace).encode())
    answer = fuzzed.call("POST", "/api/import", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (200, 400), answer.text
    for taken in answer.json().get("taken", ()):
        fuzzed.call("GET", f"/api/sessions/{taken['sessionId']}")
        fuzzed.call("DELETE", f"/api/sessions/{taken['sessionId']}?purge=true")
    fuzzed.check_log()


def test_sessions_json_files_that_once_failed_are_imported_or_refused(fuzzed: FuzzedServer) -> None:
    replay("sessions_json_route", lambda data: check_sessions(fuzzed, data))


def test_mutated_sessions_json_files_are_imported_or_refused(fuzzed: FuzzedServer) -> None:
    inputs = mutated_json(saved("WORKSPACE")).map(lambda value: json.dumps(value).encode())
    fuzz("sessions_json_route", inputs, lambda data: check_sessions(fuzzed, data), 80)
