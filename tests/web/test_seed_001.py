"""Seed 001 by its numbers, R13 to R43: real REST on a real server with a real agent process."""

import asyncio
import shutil
import sqlite3
import subprocess
import uuid
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import create_engine, inspect

from bullpen import config
from bullpen.domain.states import SessionStatus
from bullpen.store import schema
from support.scripted_agent.journal import message_of, read_journal
from support.server import Server, end_processes_of
from support.server_without_web import ServerWithoutWeb, run_turn, until
from support.session_client import SessionClient, define_scripted

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOBODY = "00000000-0000-4000-8000-000000000000"
LIMIT = 3


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A server with the scripted agent and a slot for three sessions; every test frees what it took."""
    place = tmp_path_factory.mktemp("seed")
    (place / "workspace").mkdir()
    server = Server(place / "home", place / "workspace", {"AGENT_MAX_SESSIONS": str(LIMIT)})
    await server.start()
    await define_scripted(server)
    yield server
    await server.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def repository(desk: Server) -> dict[str, Any]:
    return await register(desk, "project")


@pytest_asyncio.fixture(loop_scope="module")
async def talk(desk: Server, repository: dict[str, Any]) -> AsyncIterator[SessionClient]:
    """A session of the repository whose agent is ready."""
    session = await desk.call(
        "POST", "/api/sessions", 201, json={"repoId": repository["id"], "agentId": "scripted"}
    )
    this = SessionClient(desk, session)
    await this.wait_for_event("agent_session")
    yield this
    await desk.call("DELETE", this.path, 200)


async def register(server: Server, name: str) -> dict[str, Any]:
    """A repository in the workspace root."""
    path = server.workspace / name
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    made: dict[str, Any] = await server.call("POST", "/api/repositories", 201, json={"path": str(path)})
    return made


async def messages(talk: SessionClient, **params: str) -> list[dict[str, Any]]:
    listed = await talk.server.call("GET", f"{talk.path}/messages", 200, params=params)
    found: list[dict[str, Any]] = listed["messages"]
    return found


async def contents(talk: SessionClient, role: str, type: str) -> list[dict[str, Any]]:
    return [
        each["content"]
        for each in await messages(talk)
        if (each["role"], each["content"]["type"]) == (role, type)
    ]


def is_uuid(text: str) -> bool:
    return str(uuid.UUID(text)) == text


def is_time(text: str) -> bool:
    return datetime.fromisoformat(text).tzinfo is not None


# What is stored


async def test_r13_a_session_row_has_its_id_repository_status_and_times(
    talk: SessionClient, repository: dict[str, Any]
) -> None:
    with sqlite3.connect(f"file:{talk.server.home}/bullpen.db?mode=ro", uri=True) as database:
        row = database.execute(
            "SELECT repo_id, status, created_at, updated_at FROM sessions WHERE id = ?", [talk.id]
        ).fetchone()
        keys = database.execute("PRAGMA foreign_key_list(sessions)").fetchall()
    assert is_uuid(talk.id)
    assert row[:2] == (repository["id"], "active")
    assert 0 < row[2] <= row[3]
    assert ("repositories", "repo_id", "id") in [key[2:5] for key in keys]


async def test_r14_a_message_row_has_its_id_session_role_content_and_time(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk hello]] [[plan one]]")
    told = await messages(talk)
    assert {message["role"] for message in told} == {"user", "agent", "system"}
    for message in told:
        assert is_uuid(message["id"])
        assert message["sessionId"] == talk.id
        assert isinstance(message["content"], dict)
        assert is_time(message["timestamp"])
    assert len({message["id"] for message in told}) == len(told)


async def test_r15_a_session_comes_with_its_messages_in_order_and_its_repository(
    talk: SessionClient, repository: dict[str, Any]
) -> None:
    for word in ("one", "two"):
        await talk.run_turn(f"[[chunk {word}]]")
    detail = await talk.server.call("GET", talk.path, 200)
    assert detail["repo"] == repository
    assert detail["messages"] == await messages(talk)
    assert [each["seq"] for each in detail["messages"]] == sorted(each["seq"] for each in detail["messages"])
    times = [each["timestamp"] for each in detail["messages"]]
    assert times == sorted(times)


async def test_r15_a_session_remembers_a_repository_that_was_forgotten(desk: Server) -> None:
    repository = await register(desk, "forgotten")
    session = await desk.call("POST", "/api/sessions", 201, json={"repoId": repository["id"]})
    await desk.call("DELETE", f"/api/repositories/{repository['id']}", 204)
    detail = await desk.call("GET", f"/api/sessions/{session['id']}", 200)
    assert detail["repo"]["path"] == repository["path"]


# Status


async def test_r16_an_active_session_takes_prompts_and_follows_activity(talk: SessionClient) -> None:
    before = await talk.server.call("GET", talk.path)
    await talk.run_turn("[[chunk x]]")
    after = await talk.server.call("GET", talk.path)
    assert (before["status"], after["status"]) == ("active", "active")
    assert after["updatedAt"] > before["updatedAt"]


async def test_r17_a_completed_session_takes_no_prompt_and_says_its_status(talk: SessionClient) -> None:
    session = await talk.server.call("POST", f"{talk.path}/complete", 200)
    assert (session["status"], session["endReason"]) == ("completed", "user_request")
    assert session["metadata"]["reason"] == "user_request"
    assert (await contents(talk, "system", "text"))[-1][
        "text"
    ] == "the session is completed (ended by a person)"
    assert session["workers"][0]["activityWhy"] == "ended by a person"
    refused = await talk.prompt("x", expect=409)
    assert refused["error"] == "conflict"
    assert "completed" in refused["message"]


async def test_r18_a_cancelled_session_says_why_in_a_system_message(talk: SessionClient) -> None:
    session = await talk.server.call("DELETE", talk.path, 200)
    assert (session["status"], session["live"]) == ("cancelled", False)
    assert "cancelled" in (await contents(talk, "system", "text"))[-1]["text"]
    assert "cancelled" in (await talk.prompt("x", expect=409))["message"]


async def test_r19_an_agent_that_cannot_work_ends_its_session_with_the_details(desk: Server) -> None:
    await define_scripted(desk, "broken", {"start": ["stderr text=no-key", "exit code=7"]})
    talk = SessionClient(desk, await desk.new_session(agentId="broken"))
    await talk.wait_for_event("session_end", status="error")
    session = await desk.call("GET", talk.path)
    assert (session["status"], session["endReason"]) == ("error", "error")
    last = session["messages"][-1]
    assert last["role"] == "system"
    assert "exit code 7" in last["content"]["text"]
    assert "no-key" in last["content"]["text"]
    assert "error" in (await talk.prompt("x", expect=409))["message"]


# Lists


async def test_r20_the_list_is_the_newest_first_without_messages_twenty_a_page(desk: Server) -> None:
    made = [(await desk.new_session(title=f"number {number}"))["id"] for number in range(21)]
    first = await desk.call("GET", "/api/sessions", 200)
    assert (first["limit"], first["offset"], len(first["sessions"])) == (20, 0, 20)
    assert [each["id"] for each in first["sessions"]] == made[::-1][:20]
    assert not any("messages" in each for each in first["sessions"])
    second = await desk.call("GET", "/api/sessions", 200, params={"offset": 20})
    assert second["sessions"][0]["id"] == made[0]


async def test_r21_the_list_can_be_of_one_repository(talk: SessionClient, repository: dict[str, Any]) -> None:
    other = await talk.server.new_session()
    listed = await talk.server.call("GET", "/api/sessions", 200, params={"repoId": repository["id"]})
    ids = [each["id"] for each in listed["sessions"]]
    assert ids[0] == talk.id
    assert other["id"] not in ids
    assert {each["repoId"] for each in listed["sessions"]} == {repository["id"]}


async def test_r22_the_list_can_be_of_several_statuses(desk: Server) -> None:
    made = [await desk.new_session() for _ in range(3)]
    await desk.call("POST", f"/api/sessions/{made[0]['id']}/complete", 200)
    await desk.call("DELETE", f"/api/sessions/{made[1]['id']}", 200)
    params = {"status": "completed,cancelled", "limit": "1000"}
    listed = await desk.call("GET", "/api/sessions", 200, params=params)
    ids = [each["id"] for each in listed["sessions"]]
    assert {made[0]["id"], made[1]["id"]} <= set(ids)
    assert made[2]["id"] not in ids
    assert {each["status"] for each in listed["sessions"]} == {"completed", "cancelled"}
    assert (await desk.call("GET", "/api/sessions?status=sleeping", 400))["error"] == "invalid"


# Where it works


async def test_r23_a_repository_exists_and_lies_inside_the_root(desk: Server, tmp_path: Path) -> None:
    nobody = await desk.call("POST", "/api/sessions", 404, json={"repoId": NOBODY})
    assert NOBODY in nobody["message"]
    outside = tmp_path / "outside"
    subprocess.run(["git", "init", "-q", str(outside)], check=True)
    refused = await desk.call("POST", "/api/repositories", 403, json={"path": str(outside)})
    assert "workspace root" in refused["message"]


async def test_r23_a_repository_that_was_moved_out_of_the_root_takes_no_session(
    desk: Server, tmp_path: Path
) -> None:
    repository = await register(desk, "leaving")
    place = Path(repository["path"])
    shutil.move(place, tmp_path / "left")
    place.symlink_to(tmp_path / "left")
    refused = await desk.call("POST", "/api/sessions", 403, json={"repoId": repository["id"]})
    assert refused["error"] == "forbidden"


async def test_r24_the_agent_starts_in_its_workspace_and_that_is_logged(
    talk: SessionClient, repository: dict[str, Any]
) -> None:
    worker = await talk.worker()
    assert Path(f"/proc/{worker['pid']}/cwd").readlink() == Path(repository["path"])
    new = [
        message_of(record)["params"]["cwd"]
        for record in read_journal(talk.server.home.parent / "scripted.journal")
        if record["dir"] == "in" and message_of(record).get("method") == "session/new"
    ]
    assert new[-1] == repository["path"]
    told = [line for line in talk.server.output().splitlines() if "starting an agent" in line]
    assert repository["path"] in told[-1]
    assert worker["id"] in told[-1]


@pytest.mark.parametrize("escape", ["..", "a/../../x", "link", "/etc", "link/../.."])
async def test_r25_an_escape_is_refused_and_logged_as_a_security_event(desk: Server, escape: str) -> None:
    link = desk.workspace / "link"
    if not link.is_symlink():
        link.symlink_to("/etc")
    body = {"locationPath": str(desk.workspace / escape)}
    refused = await desk.call("POST", "/api/sessions", 403, json=body)
    assert refused["error"] == "forbidden"
    told = [line for line in desk.output().splitlines() if "security" in line]
    assert body["locationPath"] in told[-1]


# What messages look like


async def test_r26_what_the_user_said_is_text(talk: SessionClient) -> None:
    await talk.run_turn("fix the build")
    assert await contents(talk, "user", "text") == [{"type": "text", "text": "fix the build"}]


async def test_r27_what_the_agent_said_is_text_that_may_be_partial(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk Hel]] [[sleep 0.2]] [[chunk lo]]")
    said = await contents(talk, "agent", "text")
    assert "".join(each["text"] for each in said) == "Hello"
    assert [each["partial"] for each in said] == [*[True] * (len(said) - 1), False]


async def test_r28_a_plan_has_steps(talk: SessionClient) -> None:
    await talk.run_turn("[[plan 'look mend']]")
    (plan,) = await contents(talk, "system", "plan")
    assert [step["content"] for step in plan["steps"]] == ["look", "mend"]


async def test_r29_a_tool_has_its_name_arguments_and_result(talk: SessionClient) -> None:
    call = '[[tool toolCallId=c title=grep \'rawInput={"q":"x"}\' status=in_progress]]'
    await talk.run_turn(call + "[[tool_update toolCallId=c status=completed 'rawOutput={\"hits\":2}']]")
    announced, finished = await contents(talk, "system", "tool")
    assert (announced["tool"], announced["args"], announced["result"]) == ("grep", {"q": "x"}, None)
    assert (finished["tool"], finished["args"], finished["result"]) == ("grep", {"q": "x"}, {"hits": 2})


# The routes


@pytest.mark.parametrize("name", ["repoId", "repositoryId"])
async def test_r30_a_session_is_made_with_201(desk: Server, repository: dict[str, Any], name: str) -> None:
    session = await desk.call("POST", "/api/sessions", 201, json={name: repository["id"]})
    assert is_uuid(session["id"])
    assert (session["repoId"], session["status"]) == (repository["id"], "active")
    assert session["locationPath"] == repository["path"]
    assert is_time(session["createdAt"])


async def test_r31_the_list_says_how_many_there_are_and_which_these_are(desk: Server) -> None:
    for _ in range(3):
        await desk.new_session()
    page = await desk.call("GET", "/api/sessions", 200, params={"limit": 2, "offset": 1})
    assert set(page) == {"sessions", "total", "limit", "offset"}
    assert (page["limit"], page["offset"], len(page["sessions"])) == (2, 1, 2)
    assert page["total"] >= 3


async def test_r32_a_session_is_shown_and_one_that_is_not_is_404(talk: SessionClient) -> None:
    detail = await talk.server.call("GET", talk.path, 200)
    assert {"id", "repoId", "status", "createdAt", "updatedAt", "messages", "repo"} <= set(detail)
    missing = await talk.server.call("GET", f"/api/sessions/{NOBODY}", 404)
    assert missing["error"] == "not_found"


async def test_r33_a_prompt_is_accepted_at_once(talk: SessionClient) -> None:
    prompted = await talk.prompt("[[wait_cancel]]")
    assert set(prompted) == {"promptId", "seq", "queued"}
    assert (await messages(talk))[-1]["content"] == {"type": "text", "text": "[[wait_cancel]]"}
    assert not [event for event in await talk.events() if event["type"] == "turn_end"]
    await talk.server.call("POST", f"{talk.path}/cancel", 204)
    await talk.wait_for_event("turn_end", stopReason="cancelled")
    assert (await contents(talk, "system", "text"))[-1]["text"] == "the turn was cancelled"


async def test_r34_messages_can_be_asked_for_since_a_time(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk one]]")
    before = await messages(talk)
    await talk.run_turn("[[chunk two]]")
    later = await messages(talk, since=before[-1]["timestamp"])
    assert before + later == await messages(talk)
    assert "two" in "".join(each["content"].get("text", "") for each in later)
    wrong = await talk.server.call("GET", f"{talk.path}/messages?since=yesterday", 400)
    assert wrong["error"] == "invalid"


async def test_r35_delete_cancels_the_turn_ends_the_agent_and_answers_with_the_session(
    talk: SessionClient,
) -> None:
    await talk.prompt("[[wait_cancel]]")
    pid = (await talk.worker())["pid"]
    session = await talk.server.call("DELETE", talk.path, 200)
    assert (session["id"], session["status"]) == (talk.id, "cancelled")
    assert [worker["state"] for worker in session["workers"]] == ["terminated"]
    assert not Path(f"/proc/{pid}").exists()
    heard = [
        message_of(record).get("method")
        for record in read_journal(talk.server.home.parent / "scripted.journal")
        if record["dir"] == "in" and record["pid"] == pid
    ]
    assert heard[-1] == "session/cancel"


# Limits


async def test_r36_one_session_too_many_is_told_to_come_again(desk: Server) -> None:
    made = [await SessionClient.begin(desk) for _ in range(LIMIT)]
    body = {"locationPath": str(desk.workspace), "agentId": "scripted"}
    refused = await desk.http.post("/api/sessions", json=body)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    assert refused.json()["error"] == "too_many"
    assert str(LIMIT) in refused.json()["message"]
    assert "try again" in refused.json()["message"]
    assert config.load(env={"HOME": "/"}).max_sessions == 5
    for each in made:
        await desk.call("DELETE", each.path, 200)


async def test_r37_a_freed_slot_can_be_used_and_that_is_logged(desk: Server) -> None:
    made = [await SessionClient.begin(desk) for _ in range(LIMIT)]
    await desk.call("POST", f"{made[0].path}/complete", 200)
    made.append(await SessionClient.begin(desk))
    told = [line for line in desk.output().splitlines() if "a slot is free" in line]
    assert made[0].id in told[-1]
    for each in made:
        await desk.call("DELETE", each.path, 200)


# Idle sessions: minutes are too long for a test, so that the house is told of seconds


@pytest_asyncio.fixture(loop_scope="module")
async def sleepy_house(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    house = ServerWithoutWeb(tmp_path, idle_seconds=1.0)
    house.define_agent()
    async with house.open():
        yield house
    await asyncio.to_thread(end_processes_of, house.home)


async def test_r38_an_idle_session_is_cancelled_and_completed(sleepy_house: ServerWithoutWeb) -> None:
    session = await sleepy_house.session("scripted")
    snapshot = await until(session, lambda s: s.status is not SessionStatus.ACTIVE)
    assert snapshot.status is SessionStatus.COMPLETED
    assert snapshot.metadata == {"reason": "idle_timeout"}
    async with asyncio.timeout(60):
        while session.busy:
            await asyncio.sleep(0.01)
    records = [record for record in read_journal(sleepy_house.journal) if record["dir"] == "in"]
    assert message_of(records[-1])["method"] == "session/cancel"


async def test_r39_activity_resets_the_idle_time(sleepy_house: ServerWithoutWeb) -> None:
    session = await sleepy_house.session("scripted")
    for _ in range(4):
        await run_turn(session, "[[sleep 0.4]]")  # longer in all than an idle session lives
        assert session.snapshot.status is SessionStatus.ACTIVE
    await until(session, lambda s: s.end_reason == "idle_timeout")


async def test_r40_the_idle_time_is_set_in_minutes() -> None:
    assert config.load(env={"HOME": "/"}).idle_timeout == 30
    assert config.load(env={"HOME": "/", "AGENT_SESSION_IDLE_TIMEOUT": "7"}).idle_timeout == 7


# The schema


async def test_r41_sessions_and_their_repository_are_tables_with_a_foreign_key(desk: Server) -> None:
    look = inspect(create_engine(f"sqlite:///{desk.home}/bullpen.db"))
    columns = {column["name"] for column in look.get_columns("sessions")}
    assert {"id", "repo_id", "status", "created_at", "updated_at"} <= columns
    assert look.get_pk_constraint("sessions")["constrained_columns"] == ["id"]
    assert [key["referred_table"] for key in look.get_foreign_keys("sessions")] == ["repositories"]


async def test_r42_messages_are_a_table_with_a_foreign_key_to_their_session(desk: Server) -> None:
    look = inspect(create_engine(f"sqlite:///{desk.home}/bullpen.db"))
    columns = {column["name"] for column in look.get_columns("messages")}
    assert {"id", "session_id", "role", "content", "timestamp"} <= columns
    assert [key["referred_table"] for key in look.get_foreign_keys("messages")] == ["sessions"]


async def test_r43_indexes_are_there_and_migrations_go_up_and_down(desk: Server, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/bullpen.db"
    schema.prepare(url)

    def indexed() -> set[str]:
        look = inspect(create_engine(url))
        tables = set(look.get_table_names()) & {"sessions", "messages"}
        return {str(name) for table in tables for i in look.get_indexes(table) for name in i["column_names"]}

    assert {"session_id", "repo_id", "status", "timestamp"} <= indexed()
    schema.downgrade(url, "base")
    assert indexed() == set()
    schema.upgrade(url)
    assert {"session_id", "repo_id", "status", "timestamp"} <= indexed()
