"""Damaged zip files and zip bombs are refused with 400, take little memory and leave no file."""

import io
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZipFile, ZipInfo

import pytest
import pytest_asyncio

from bullpen.wire.event_lines import event_line
from support.memory import peak, reset_peak
from support.server import Server

pytestmark = pytest.mark.asyncio(loop_scope="session")

SESSION = "4c0f1f0e-3a52-4a0e-9d0b-6a5f1b1d2c01"
WORKER = "7d1f1f0e-3a52-4a0e-9d0b-6a5f1b1d2c02"
SPOOL = f"terminals/{WORKER}/1/{0:020d}"
IMAGE = f"images/{'0' * 32}.png"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)
MAX_GROWTH = 64 << 20  # bytes of memory that a refused import may take


def event(seq: int, type: str, worker_id: str | None = None, **data: Any) -> bytes:
    about = {"seq": seq, "type": type, "workerId": worker_id, "role": worker_id and "shell"}
    return event_line(json.dumps(about | {"timestamp": "2026-01-01T00:00:00.000Z", "data": data}).encode())


def recording() -> dict[str, bytes]:
    """The files of a session with a terminal and an image."""
    events = [
        event(1, "session_start", sessionType="quick", locationPath="/tmp", title="recorded"),
        event(2, "worker_spawning", WORKER, workerType="terminal", name="shell", workspace="/tmp", run=1),
        event(3, "worker_ready", WORKER, pid=1),
        event(4, "worker_exited", WORKER, exitCode=0),
        event(5, "session_end", status="completed", reason="user_request"),
    ]
    return {
        "metadata.json": json.dumps({"format": 1, "id": SESSION, "lastSeq": len(events)}).encode(),
        "events.jsonl": b"".join(events),
        f"{SPOOL}.idx": struct.pack("!QqHH", 0, 1_767_225_600_000_000_000, 80, 24),
        f"{SPOOL}.bin": b"$ echo hello\r\nhello\r\n",
        IMAGE: PIXEL,
    }


def zipped(files: dict[str, bytes], method: int = ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def changed(name: str, content: bytes) -> bytes:
    """Return a recording in which one file has other content."""
    return zipped(recording() | {name: content})


def bomb(name: str, size: int, start: bytes = b"", unit: bytes = b"\0") -> bytes:
    """Return a recording in which one file is `size` bytes long, without holding the file in memory."""
    out = io.BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for each, content in recording().items():
            if each != name:
                archive.writestr(each, content)
        member_info = ZipInfo(name)
        member_info.compress_type = ZIP_DEFLATED
        with archive.open(member_info, "w", force_zip64=True) as member:
            member.write(start)
            block = unit * ((1 << 20) // len(unit))
            for _ in range(size >> 20):
                member.write(block)
    return out.getvalue()


def header_position(data: bytes, signature: bytes, name: bytes) -> int:
    """Return the position of the header with this signature for the member `name`."""
    size = {b"PK\3\4": 30, b"PK\1\2": 46}[signature]
    return next(
        position
        for position in _positions_of(data, signature)
        if data[position + size : position + size + len(name)] == name
    )


def _positions_of(data: bytes, signature: bytes) -> Iterator[int]:
    position = data.find(signature)
    while position >= 0:
        yield position
        position = data.find(signature, position + 1)


def patched(data: bytes, position: int, new: bytes) -> bytes:
    return data[:position] + new + data[position + len(new) :]


def patched_entry(data: bytes, field: int, new: bytes, name: bytes = b"events.jsonl") -> bytes:
    return patched(data, header_position(data, b"PK\1\2", name) + field, new)


def with_broken_data(data: bytes) -> bytes:
    return patched(
        data, header_position(data, b"PK\3\4", b"events.jsonl") + 30 + len(b"events.jsonl"), b"\xff" * 20
    )


def with_flags(data: bytes, flags: int) -> bytes:
    new = struct.pack("<H", flags)
    return patched(patched_entry(data, 8, new), header_position(data, b"PK\3\4", b"events.jsonl") + 6, new)


def with_duplicate_name(data: bytes) -> bytes:
    out = io.BytesIO(data)
    with pytest.warns(UserWarning, match="Duplicate"), ZipFile(out, "a") as archive:
        archive.writestr("events.jsonl", recording()["events.jsonl"])
    return out.getvalue()


def with_overlap(data: bytes) -> bytes:
    """Return a zip whose directory says that two members start at the same position."""
    first = data[header_position(data, b"PK\1\2", b"metadata.json") + 42 :][:4]
    return patched_entry(data, 42, first)


def with_missing_zip64_record(data: bytes) -> bytes:
    """Return a zip whose end record refers to a zip64 record that does not exist."""
    return patched(data, len(data) - 22 + 8, b"\xff" * 12)


BROKEN: dict[str, Callable[[], bytes]] = {
    "deflate": lambda: with_broken_data(zipped(recording())),
    "bz2": lambda: zipped(recording(), ZIP_BZIP2),
    "broken bz2": lambda: with_broken_data(zipped(recording(), ZIP_BZIP2)),
    "lzma": lambda: zipped(recording(), ZIP_LZMA),
    "broken lzma": lambda: with_broken_data(zipped(recording(), ZIP_LZMA)),
    "unknown method": lambda: patched_entry(zipped(recording()), 10, struct.pack("<H", 99)),
    "encrypted": lambda: with_flags(zipped(recording()), 1),
    "strong encryption": lambda: with_flags(zipped(recording()), 0x41),
    "patched data": lambda: with_flags(zipped(recording()), 0x20),
    "zip64 end record missing": lambda: with_missing_zip64_record(zipped(recording())),
    "zip64 size of a member missing": lambda: patched_entry(zipped(recording()), 24, b"\xff" * 4),
    "overlapping": lambda: with_overlap(zipped(recording())),
    "two of one name": lambda: with_duplicate_name(zipped(recording())),
    "checksum": lambda: patched_entry(zipped(recording()), 16, b"abcd"),
    "longer than declared": lambda: patched_entry(zipped(recording()), 24, struct.pack("<L", 10)),
    "shorter than declared": lambda: patched_entry(zipped(recording()), 24, struct.pack("<L", 1 << 20)),
    "packed larger than the file": lambda: patched_entry(zipped(recording()), 20, struct.pack("<L", 1 << 30)),
    "offset outside of the file": lambda: patched_entry(zipped(recording()), 42, struct.pack("<L", 1 << 30)),
    "end cut off": lambda: zipped(recording())[:-30],
    "directory cut off": lambda: zipped(recording())[:-200] + zipped(recording())[-22:],
    "start cut off": lambda: zipped(recording())[100:],
    "no zip": lambda: b"PK\5\6",
    "empty": lambda: b"",
    "only an end record": lambda: b"PK\5\6" + bytes(18),
    "a directory of another name": lambda: changed("terminals/", b""),
    "a name that is not ASCII": lambda: changed("ümläut", b""),
    "a path that leads out": lambda: changed("../events.jsonl", b""),
    "a segment beyond 64 bits": lambda: changed(f"terminals/{WORKER}/1/{'9' * 20}.bin", b"x"),
    "segments that overlap": lambda: changed(f"terminals/{WORKER}/1/{3:020d}.bin", b"x"),
    "metadata that is not JSON": lambda: changed("metadata.json", b"{"),
    "metadata that is not an object": lambda: changed("metadata.json", b"[]"),
    "an image that is text": lambda: changed(IMAGE, b"hello"),
    "an image of another type": lambda: changed(f"images/{'1' * 32}.gif", PIXEL),
    "an event without data": lambda: changed(
        "events.jsonl", event_line(b'{"seq":1,"type":"error","timestamp":"2026-01-01T00:00:00Z"}')
    ),
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def importing_server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("importing")
    (directory / "workspace").mkdir()
    server = Server(directory / "home", directory / "workspace")
    await server.start()
    yield server
    await server.close()


def files_of(home: Path) -> set[Path]:
    """Return all files that an import could leave."""
    kept = [*home.glob(".import-*"), *(home / "spool").rglob("*"), *(home / "images").rglob("*")]
    return {*kept, *(home / "recordings").rglob("*")}


async def import_zip(server: Server, data: bytes) -> tuple[int, Any]:
    answer = await server.http.put(f"/api/recordings/{SESSION}", content=data, timeout=120)
    return answer.status_code, answer.json()


async def import_refused(server: Server, data: bytes) -> str:
    """Import a zip that must be refused, check that no file is left, and return the reason."""
    before = files_of(server.home)
    status, answer = await import_zip(server, data)
    assert (status, answer["error"]) == (400, "invalid"), answer
    assert files_of(server.home) == before
    assert (await server.call("GET", "/api/sessions"))["total"] == 0
    assert "\n" not in answer["message"]
    return str(answer["message"])


@pytest.mark.parametrize("damage", BROKEN)
async def test_a_broken_zip_is_refused_in_one_sentence_and_leaves_nothing(
    importing_server: Server, damage: str
) -> None:
    assert await import_refused(importing_server, BROKEN[damage]())


async def test_the_recording_that_these_tests_damage_is_imported_when_it_is_intact(
    importing_server: Server,
) -> None:
    assert (await import_zip(importing_server, zipped(recording())))[0] == 201
    await importing_server.call("DELETE", f"/api/sessions/{SESSION}?purge=true")


@pytest.mark.parametrize(
    ("name", "size", "start", "unit"),
    [
        (IMAGE, 600 << 20, PIXEL, b"\0"),
        ("metadata.json", 200 << 20, b"[", b"[],"),
        ("events.jsonl", 200 << 20, b'{"seq":1,"type":"', b"a"),
        ("events.jsonl", 100 << 20, b"", b"\n"),
        (f"{SPOOL}.idx", 300 << 20, b"", bytes(20)),
    ],
    ids=["image", "metadata", "one endless line", "only newlines", "index"],
)
async def test_hundreds_of_megabytes_in_a_small_zip_take_little_memory(
    importing_server: Server, name: str, size: int, start: bytes, unit: bytes
) -> None:
    data = bomb(name, size, start, unit)
    assert len(data) < 1 << 20
    before = reset_peak(importing_server.pid)
    await import_refused(importing_server, data)
    assert peak(importing_server.pid) - before < MAX_GROWTH


async def test_a_line_with_millions_of_values_takes_little_memory(importing_server: Server) -> None:
    values = b"[" + b"[]," * (8 << 20) + b"0]"
    line = event_line(
        b'{"seq":1,"type":"x","workerId":null,"role":null,"timestamp":"2026-01-01T00:00:00Z","data":{"a":%b}}'
        % values
    )
    data = zipped(recording() | {"events.jsonl": line})
    before = reset_peak(importing_server.pid)
    await import_refused(importing_server, data)
    assert peak(importing_server.pid) - before < 4 * MAX_GROWTH


async def test_a_directory_of_millions_of_members_takes_little_memory(importing_server: Server) -> None:
    entry = zipped({"a": b""})[31:-22]
    count = 1_000_000
    directory = entry * count
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count % 65535, count % 65535, len(directory), 0, 0)
    before = reset_peak(importing_server.pid)
    await import_refused(importing_server, directory + end)
    assert peak(importing_server.pid) - before < MAX_GROWTH


async def test_an_index_of_two_million_entries_is_read_with_little_memory(importing_server: Server) -> None:
    entry = recording()[f"{SPOOL}.idx"]
    status, answer = await import_zip(importing_server, bomb(f"{SPOOL}.idx", 40 << 20, b"", entry))
    assert status == 201, answer
    before = reset_peak(importing_server.pid)
    for path in ("timeline", "export?format=zip", f"workers/{WORKER}/output?format=cast"):
        answer = await importing_server.http.get(f"/api/sessions/{SESSION}/{path}", timeout=240)
        assert answer.status_code == 200
    assert peak(importing_server.pid) - before < MAX_GROWTH
    await importing_server.call("DELETE", f"/api/sessions/{SESSION}?purge=true")
