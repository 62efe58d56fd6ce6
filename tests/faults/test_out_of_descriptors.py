"""The server has no free file descriptor: each failure names this cause, and works again when one is free."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path

import pytest

from support.retrying_client import RetryingClient, define_scripted
from support.server import Server

REASON = "too many open files"


@contextmanager
def free_descriptors(pid: int, number: int) -> Iterator[None]:
    """Let the process open this number of additional files; each further one fails with EMFILE."""
    used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    # With 0, also a descriptor that the server closes meanwhile cannot be used again.
    limit = next(islice((fd for fd in count() if fd not in used), number, None)) if number else 0
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


async def start_worker(server: Server, free: int, session_id: str, **body: str) -> None:
    """Start a worker while few descriptors are free. If it is refused or fails, the reason must be named."""
    path = f"/api/sessions/{session_id}/workers"
    with free_descriptors(server.pid, free):
        ordered = await server.http.post(path, json=body)
        if ordered.status_code == 503:
            assert REASON in ordered.json()["message"].lower()
            return
        assert ordered.status_code == 201, ordered.text
        worker = await server.worker_in(session_id, ordered.json()["id"], "active", "failed")
    if worker["state"] == "failed":
        assert REASON in worker["error"].lower()
        await server.call("POST", f"{path}/{worker['id']}/restart")
        await server.worker_in(session_id, worker["id"], "active")


@pytest.mark.parametrize("free", range(4))
async def test_a_terminal_made_without_descriptors_does_not_stay_spawning(server: Server, free: int) -> None:
    session = await server.new_session()
    await start_worker(server, free, session["id"], type="terminal")
    await server.new_terminal(session["id"])


@pytest.mark.parametrize("free", range(4))
async def test_an_agent_started_without_descriptors_fails_with_the_reason(
    server: Server, workspace: Path, free: int
) -> None:
    define_scripted(workspace)
    session = await server.new_session()
    await start_worker(server, free, session["id"], type="agent", agentId="scripted")
    client = await RetryingClient.begin(server)
    async with client.following():
        await client.prompt("[[chunk done]]")
        await client.until_turns(1)
    assert client.agent_text() == "done"


async def test_a_file_that_cannot_be_opened_without_descriptors_is_not_reported_as_missing(
    server: Server, workspace: Path
) -> None:
    (workspace / "file").write_text("content")
    session = await server.new_session()
    path = f"/api/sessions/{session['id']}/files/file"
    with free_descriptors(server.pid, 0):
        answer = await server.http.get(path)
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.json()["error"] == "unavailable"
    assert REASON in answer.json()["message"].lower()
    assert (await server.http.get(path)).text == "content"
