"""No request gets a 5xx: schemathesis calls every operation of the OpenAPI document with every credential.

A finding is a 5xx, a status or a body that the document does not describe, or a traceback in the log.
"""

import asyncio
import os
import random
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from support.openapi_runs import Fuzzer, Target
from support.pictures import png
from support.repositories import Repo
from support.request_mutations import MUTATIONS
from support.server import Server
from support.tui_session_client import TuiSessionClient, define_tui
from web.clients import Headers, bearer_headers, environment_of, new_token

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
FULL_SECONDS = 900  # for each credential
TIMEOUT = 4 * 3600 if FULL else 600  # seconds; a run takes a minute on one core
# A usual run has a test for each group of paths and one for sequences, so that processes of pytest share it.
PATHS = {"sessions": "^/api/sessions", "others": "^(?!/api/sessions)"}
SEQUENCES, EVERYTHING = "sequences", "everything"
USUAL = ("--generation-deterministic", "--max-examples", "3")
PROGRAMS = ("git", "bash", "sh")
DIGITS = "9" * 5000
INVALID_CREDENTIALS = {
    "none": {},
    "unknown token": {"Authorization": "Bearer bpt_unknown"},
    "worker key with a huge number": {"Authorization": f"Bearer bpw_x.y.{DIGITS}"},
    "unknown login": {"Cookie": "bullpen=unknown", "X-Bullpen-Secret": "\xff"},
}


@pytest.fixture
async def fuzzed(tmp_path: Path, workspace: Path) -> AsyncIterator[Server]:
    """Start a server whose PATH has git and a shell, but no agent that is installed on this machine."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found, name
        (programs / name).symlink_to(found)
    server = Server(tmp_path / "home", workspace, {"PATH": str(programs)})
    await server.start()
    yield server
    await server.close()


async def prepare(server: Server) -> tuple[Target, dict[str, Headers]]:
    """Create resources that a path can name, and a credential of each scope."""
    repository = Repo(server.workspace / "repository")
    path = str(repository.path)
    repo_id = (await server.call("POST", "/api/repositories", 201, json={"path": path}))["id"]
    tree = {"name": "tree", "branch": "tree"}
    await server.call("POST", f"/api/repositories/{repo_id}/worktrees", 201, json=tree)
    await define_tui(server)
    talk = await TuiSessionClient.begin(server, locationPath=path)
    agent = await talk.worker()
    terminal = await server.new_terminal(talk.id)
    saved = {"id": "saved", "worktreePath": path, "createdAt": "2025-01-01T00:00:00Z"}
    imported = await server.call("POST", "/api/import", 200, json={"sessions": [saved]})
    tokens = {scope: await new_token(server, scope) for scope in ("delegate", "view", "operate", "admin")}
    share = await server.call("POST", f"/api/sessions/{talk.id}/share", 201, json={})
    credentials = {scope: bearer_headers(token["token"]) for scope, token in tokens.items()}
    started = await server.http.post("/api/sessions", json={}, headers=credentials["delegate"])
    credentials["guest"] = bearer_headers(share["token"])
    credentials["worker"] = bearer_headers(environment_of(agent["pid"])["BULLPEN_ACTIVITY_TOKEN"])
    shared = {"repo_id": [repo_id], "name": ["tree"], "agent_id": ["tui"], "path": ["readme.txt", "."]}
    resources = [
        shared | await agent_resources(server, talk.id),
        shared
        | await agent_resources(server, (await server.new_session(agentId="demo", locationPath=path))["id"]),
        {"session_id": [talk.id], "worker_id": [terminal["id"]]},
        {"session_id": [started.json()["id"]]},
        {"session_id": [imported["taken"][0]["sessionId"]]},
    ]
    document = await server.call("GET", "/api/openapi.json")
    ids = [share["id"], *(token["id"] for token in tokens.values())]
    return Target(server.url, document, credentials["admin"], resources, bodies(server), ids), credentials


async def agent_resources(server: Server, session_id: str) -> dict[str, list[str]]:
    """Add an image, questions and queued messages to a session with an agent, and return all ids."""
    session = f"/api/sessions/{session_id}"
    (agent,) = [each for each in (await server.call("GET", session))["workers"] if each["type"] == "agent"]
    await server.worker_in(session_id, agent["id"], "active")
    await server.call("POST", f"{session}/queue/pause")
    messages = [
        await server.call("POST", f"{session}/queue", 201, json={"message": f"hello {n}"}) for n in range(5)
    ]
    questions = [
        await server.call("POST", f"/api/workers/{agent['id']}/questions", 201, json={"message": f"Why {n}?"})
        for n in range(5)
    ]
    image = await server.call("POST", f"{session}/images", 201, content=png())
    return {
        "session_id": [session_id],
        "worker_id": [agent["id"]],
        "message_id": [each["id"] for each in messages],
        "question_id": [each["id"] for each in questions],
        "image_id": [image["id"]],
    }


def bodies(server: Server) -> dict[str, Any]:
    """Return bodies of operations whose accepted values the document does not describe."""
    agent = {"name": "Fuzzed", "kind": "pty", "command": ["sh"], "env": {"A": "b"}, "passEnv": ["LANG"]}
    rule = {"name": "fuzzed", "agentId": "tui", "kind": "edit", "answer": "reject", "path": "src/**"}
    return {
        "POST /api/agents": {"id": "fuzzed", **agent},
        "PUT /api/agents/{agent_id}": agent,
        "POST /api/rules": rule,
        "POST /api/repositories": {"path": str(server.workspace / "repository"), "name": "again"},
        "POST /api/sessions/{session_id}/prompt": {"text": "hello"},
    }


def options_of(part: str) -> tuple[str, ...]:
    """Return options: `coverage` tries the limits of each parameter, `fuzzing` random values."""
    if part == EVERYTHING:
        return full_options()
    if part == SEQUENCES:
        return (*USUAL, "--phases", "stateful")
    return (*USUAL, "--phases", "coverage,fuzzing", "--include-path-regex", PATHS[part])


def full_options() -> tuple[str, ...]:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    return ("--seed", str(seed), "--max-time", str(FULL_SECONDS), "--generation-database", "none")


@pytest.mark.long
@pytest.mark.timeout(TIMEOUT)
@pytest.mark.parametrize("part", [EVERYTHING] if FULL else [*PATHS, SEQUENCES])
async def test_no_request_gets_a_5xx_or_an_answer_that_the_openapi_document_does_not_describe(
    fuzzed: Server, tmp_path: Path, part: str, print_figures: Callable[[str], None]
) -> None:
    server = fuzzed
    target, credentials = await prepare(server)
    callers = credentials | INVALID_CREDENTIALS
    fuzzer = Fuzzer(target, tmp_path / "schemathesis")
    for scope in callers if FULL else ("admin",):
        others = {name: headers for name, headers in callers.items() if name != scope}
        begun = time.monotonic()
        result = await asyncio.to_thread(fuzzer.run, callers[scope], others, options_of(part))
        done = [name for name, answers in result.answers.items() if any(s < "300" for s in answers)]
        print_figures(
            f"requests, {part}: {result.operations} operations ({len(done)} with a 2xx), "
            f"{result.cases} cases as {scope}, "
            f"{sum(result.repeated.values())} again in {len(result.repeated)} other ways {result.repeated}, "
            f"{result.findings} findings, {time.monotonic() - begun:.0f} s"
        )
        assert result.findings == 0, result.report
        assert result.cases > 50  # the number of sequences depends on the answers
        if part != SEQUENCES:
            assert result.answers.keys() == operations_of(target, part)
            assert result.repeated.keys() == others.keys() | MUTATIONS.keys()
            assert min(sum(answers.values()) for answers in result.answers.values()) >= len(others)
    assert (await server.http.get("/api/health", headers=target.owner)).status_code == 200
    assert tracebacks(server) == []


def operations_of(target: Target, part: str) -> set[str]:
    """Return the operations that a part calls."""
    paths = target.document["paths"].items()
    chosen = [(path, item) for path, item in paths if re.match(PATHS.get(part, ""), path)]
    return {f"{method.upper()} {path}" for path, item in chosen for method in item}


def tracebacks(server: Server) -> list[str]:
    lines = [line for path in (server.home / "logs").glob("server.log*") for line in path.open()]
    return [line for line in (*lines, server.output()) if "Traceback" in line or "internal error" in line]
