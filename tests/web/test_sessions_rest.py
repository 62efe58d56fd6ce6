"""Sessions over REST: stored rows, status, lists, workspaces, messages, limits, idle time and schema."""

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
from bullpen.domain.errors import Invalid
from bullpen.domain.states import SessionStatus
from bullpen.store import schema
from support.scripted_agent.journal import message_of, read_journal
from support.server import Server, end_processes_of
from support.server_without_web import ServerWithoutWeb, run_turn, until
from support.session_client import SessionClient, define_scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"
MAX_SESSIONS = 3


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def limited_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A server with the scripted agent and three slots; each test frees the slots that it uses."""
    directory = tmp_path_factory.mktemp("sessions")
    (directory / "workspace").mkdir()
    server = Server(directory / "home", directory / "workspace", {"AGENT_MAX_SESSIONS": str(MAX_SESSIONS)})
    await server.start()
    await define_scripted(server)
    yield server
    await server.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def repository(limited_server: Server) -> dict[str, Any]:
    return await register(limited_server, "project")


@pytest_asyncio.fixture(loop_scope="session")
async def conversation(limited_server: Server, repository: dict[str, Any]) -> AsyncIterator[SessionClient]:
    """A session of the repository whose agent is ready."""
    session = await limited_server.call(
        "POST", "/api/sessions", 201, json={"repoId": repository["id"], "agentId": "scripted"}
    )
    conversation = SessionClient(limited_server, session)
    await conversation.wait_for_event("agent_session")
    yield conversation
    await limited_server.call("DELETE", conversation.path, 200)


async def register(server: Server, name: str) -> dict[str, Any]:
    """Create a repository in the workspace root and register it, with the scripted agent as its default."""
    path = server.workspace / name
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    created = await server.call("POST", "/api/repositories", 201, json={"path": str(path)})
    edited: dict[str, Any] = await server.call(
        "PATCH", f"/api/repositories/{created['id']}", 200, json={"agentId": "scripted"}
    )
    return edited


async def messages(conversation: SessionClient, **params: str) -> list[dict[str, Any]]:
    listed = await conversation.server.call("GET", f"{conversation.path}/messages", 200, params=params)
    found: list[dict[str, Any]] = listed["messages"]
    return found


async def message_contents(conversation: SessionClient, role: str, type: str) -> list[dict[str, Any]]:
    return [
        each["content"]
        for each in await messages(conversation)
        if (each["role"], each["content"]["type"]) == (role, type)
    ]


def is_uuid(text: str) -> bool:
    return str(uuid.UUID(text)) == text


def is_time(text: str) -> bool:
    return datetime.fromisoformat(text).tzinfo is not None


# Stored rows


async def test_a_session_row_has_its_id_repository_status_and_times(
    conversation: SessionClient, repository: dict[str, Any]
) -> None:
    with sqlite3.connect(f"file:{conversation.server.home}/bullpen.db?mode=ro", uri=True) as database:
        row = database.execute(
            "SELECT repo_id, status, created_at, updated_at FROM sessions WHERE id = ?", [conversation.id]
        ).fetchone()
        keys = database.execute("PRAGMA foreign_key_list(sessions)").fetchall()
    assert is_uuid(conversation.id)
    assert row[:2] == (repository["id"], "active")
    assert 0 < row[2] <= row[3]
    assert ("repositories", "repo_id", "id") in [key[2:5] for key in keys]


async def test_a_message_has_its_id_session_role_content_and_time(conversation: SessionClient) -> None:
    await conversation.run_turn("[[chunk hello]] [[plan one]]")
    listed = await messages(conversation)
    assert {message["role"] for message in listed} == {"user", "agent", "system"}
    for message in listed:
        assert is_uuid(message["id"])
        assert message["sessionId"] == conversation.id
        assert isinstance(message["content"], dict)
        assert is_time(message["timestamp"])
    assert len({message["id"] for message in listed}) == len(listed)


async def test_a_session_is_shown_with_its_messages_in_order_and_its_repository(
    conversation: SessionClient, repository: dict[str, Any]
) -> None:
    for word in ("one", "two"):
        await conversation.run_turn(f"[[chunk {word}]]")
    detail = await conversation.server.call("GET", conversation.path, 200)
    assert detail["repo"] == repository
    assert detail["messages"] == await messages(conversation)
    assert [each["seq"] for each in detail["messages"]] == sorted(each["seq"] for each in detail["messages"])
    times = [each["timestamp"] for each in detail["messages"]]
    assert times == sorted(times)


async def test_a_session_shows_its_repository_after_that_was_unregistered(limited_server: Server) -> None:
    repository = await register(limited_server, "forgotten")
    body = {"type": "worktree", "repoId": repository["id"]}
    session = await limited_server.call("POST", "/api/sessions", 201, json=body)
    await limited_server.call("DELETE", f"/api/repositories/{repository['id']}", 204)
    detail = await limited_server.call("GET", f"/api/sessions/{session['id']}", 200)
    assert detail["repo"]["path"] == repository["path"]


# Status


async def test_an_active_session_accepts_prompts_and_its_update_time_changes(
    conversation: SessionClient,
) -> None:
    before = await conversation.server.call("GET", conversation.path)
    await conversation.run_turn("[[chunk x]]")
    after = await conversation.server.call("GET", conversation.path)
    assert (before["status"], after["status"]) == ("active", "active")
    assert after["updatedAt"] > before["updatedAt"]


async def test_a_completed_session_refuses_prompts_and_names_its_status(conversation: SessionClient) -> None:
    session = await conversation.server.call("POST", f"{conversation.path}/complete", 200)
    assert (session["status"], session["endReason"]) == ("completed", "user_request")
    assert session["metadata"]["reason"] == "user_request"
    assert (await message_contents(conversation, "system", "text"))[-1][
        "text"
    ] == "the session is completed (ended by a person)"
    assert session["workers"][0]["activityWhy"] == "ended by a person"
    refused = await conversation.prompt("x", expect=409)
    assert refused["error"] == "conflict"
    assert "completed" in refused["message"]


async def test_a_reopened_session_has_its_agent_continue_the_conversation(
    conversation: SessionClient,
) -> None:
    server, path = conversation.server, conversation.path
    await conversation.run_turn("[[chunk before]]")
    ended = await server.call("POST", f"{path}/complete", 200)
    [agent] = ended["workers"]
    reopened = await server.call("POST", f"{path}/reopen", 200)
    assert (reopened["status"], reopened["endReason"], reopened["live"]) == ("active", None, False)
    assert "reason" not in reopened["metadata"]
    again = await server.call("POST", f"{path}/workers/{agent['id']}/restart", 200)
    assert (again["state"], again["run"]) == ("spawning", 2)
    await conversation.run_turn("[[chunk after]]")
    sessions = (await server.call("GET", f"{path}/events?types=agent_session"))["events"]
    assert [each["data"]["how"] for each in sessions] == ["new", "resume"]
    texts = [each["text"] for each in await message_contents(conversation, "system", "text")]
    assert texts == ["the session is completed (ended by a person)", "the session is continued"]


async def test_a_cancelled_session_has_a_system_message_and_refuses_prompts(
    conversation: SessionClient,
) -> None:
    session = await conversation.server.call("DELETE", conversation.path, 200)
    assert (session["status"], session["live"]) == ("cancelled", False)
    assert "cancelled" in (await message_contents(conversation, "system", "text"))[-1]["text"]
    assert "cancelled" in (await conversation.prompt("x", expect=409))["message"]


async def test_an_agent_that_cannot_start_ends_its_session_with_the_details(limited_server: Server) -> None:
    await define_scripted(limited_server, "broken", {"start": ["stderr text=no-key", "exit code=7"]})
    conversation = SessionClient(limited_server, await limited_server.new_session(agentId="broken"))
    await conversation.wait_for_event("session_end", status="error")
    session = await limited_server.call("GET", conversation.path)
    assert (session["status"], session["endReason"]) == ("error", "error")
    last = session["messages"][-1]
    assert last["role"] == "system"
    assert "exit code 7" in last["content"]["text"]
    assert "no-key" in last["content"]["text"]
    assert "error" in (await conversation.prompt("x", expect=409))["message"]


# Lists


async def test_the_list_has_the_newest_first_without_messages_twenty_per_page(limited_server: Server) -> None:
    created = [(await limited_server.new_session(title=f"number {number}"))["id"] for number in range(21)]
    first = await limited_server.call("GET", "/api/sessions", 200)
    assert (first["limit"], first["offset"], len(first["sessions"])) == (20, 0, 20)
    assert [each["id"] for each in first["sessions"]] == created[::-1][:20]
    assert not any("messages" in each for each in first["sessions"])
    second = await limited_server.call("GET", "/api/sessions", 200, params={"offset": 20})
    assert second["sessions"][0]["id"] == created[0]


async def test_the_list_can_be_filtered_by_repository(
    conversation: SessionClient, repository: dict[str, Any]
) -> None:
    other = await conversation.server.new_session()
    listed = await conversation.server.call("GET", "/api/sessions", 200, params={"repoId": repository["id"]})
    ids = [each["id"] for each in listed["sessions"]]
    assert ids[0] == conversation.id
    assert other["id"] not in ids
    assert {each["repoId"] for each in listed["sessions"]} == {repository["id"]}


async def test_the_list_can_be_filtered_by_several_statuses(limited_server: Server) -> None:
    created = [await limited_server.new_session() for _ in range(3)]
    await limited_server.call("POST", f"/api/sessions/{created[0]['id']}/complete", 200)
    await limited_server.call("DELETE", f"/api/sessions/{created[1]['id']}", 200)
    params = {"status": "completed,cancelled", "limit": "1000"}
    listed = await limited_server.call("GET", "/api/sessions", 200, params=params)
    ids = [each["id"] for each in listed["sessions"]]
    assert {created[0]["id"], created[1]["id"]} <= set(ids)
    assert created[2]["id"] not in ids
    assert {each["status"] for each in listed["sessions"]} == {"completed", "cancelled"}
    assert (await limited_server.call("GET", "/api/sessions?status=sleeping", 400))["error"] == "invalid"


# Workspaces


async def test_a_repository_must_exist_and_be_inside_the_workspace_root(
    limited_server: Server, tmp_path: Path
) -> None:
    unknown = await limited_server.call("POST", "/api/sessions", 404, json={"repoId": UNKNOWN_ID})
    assert UNKNOWN_ID in unknown["message"]
    outside = tmp_path / "outside"
    subprocess.run(["git", "init", "-q", str(outside)], check=True)
    refused = await limited_server.call("POST", "/api/repositories", 403, json={"path": str(outside)})
    assert "workspace root" in refused["message"]


async def test_a_repository_that_was_moved_out_of_the_root_gets_no_session(
    limited_server: Server, tmp_path: Path
) -> None:
    repository = await register(limited_server, "leaving")
    directory = Path(repository["path"])
    shutil.move(directory, tmp_path / "left")
    directory.symlink_to(tmp_path / "left")
    refused = await limited_server.call("POST", "/api/sessions", 403, json={"repoId": repository["id"]})
    assert refused["error"] == "forbidden"


async def test_the_agent_starts_in_its_workspace_and_its_start_is_logged(
    conversation: SessionClient, repository: dict[str, Any]
) -> None:
    worker = await conversation.worker()
    assert Path(f"/proc/{worker['pid']}/cwd").readlink() == Path(repository["path"])
    new = [
        message_of(record)["params"]["cwd"]
        for record in read_journal(conversation.server.home.parent / "scripted.journal")
        if record["dir"] == "in" and message_of(record).get("method") == "session/new"
    ]
    assert new[-1] == repository["path"]
    logged = [line for line in conversation.server.output().splitlines() if "starting an agent" in line]
    assert repository["path"] in logged[-1]
    assert worker["id"] in logged[-1]


@pytest.mark.parametrize("escape", ["..", "a/../../x", "link", "/etc", "link/../.."])
async def test_a_path_out_of_the_root_is_refused_and_logged_as_a_security_event(
    limited_server: Server, escape: str
) -> None:
    link = limited_server.workspace / "link"
    if not link.is_symlink():
        link.symlink_to("/etc")
    body = {"locationPath": str(limited_server.workspace / escape)}
    refused = await limited_server.call("POST", "/api/sessions", 403, json=body)
    assert refused["error"] == "forbidden"
    logged = [line for line in limited_server.output().splitlines() if "security" in line]
    assert body["locationPath"] in logged[-1]


# Messages


async def test_a_prompt_is_a_text_message_of_the_user(conversation: SessionClient) -> None:
    await conversation.run_turn("fix the build")
    assert await message_contents(conversation, "user", "text") == [{"type": "text", "text": "fix the build"}]


async def test_an_answer_is_a_text_message_of_the_agent_that_may_be_partial(
    conversation: SessionClient,
) -> None:
    await conversation.run_turn("[[chunk Hel]] [[sleep 0.2]] [[chunk lo]]")
    answers = await message_contents(conversation, "agent", "text")
    assert "".join(each["text"] for each in answers) == "Hello"
    assert [each["partial"] for each in answers] == [*[True] * (len(answers) - 1), False]


async def test_a_plan_is_a_message_with_steps(conversation: SessionClient) -> None:
    await conversation.run_turn("[[plan 'look mend']]")
    (plan,) = await message_contents(conversation, "system", "plan")
    assert [step["content"] for step in plan["steps"]] == ["look", "mend"]


async def test_a_tool_call_is_one_message_whose_result_is_filled_in(conversation: SessionClient) -> None:
    call = '[[tool toolCallId=c title=grep \'rawInput={"q":"x"}\' status=in_progress]]'
    finish = "[[tool_update toolCallId=c status=completed 'rawOutput={\"hits\":2}']]"
    await conversation.prompt(f"{call} [[chunk later]] [[wait_cancel]]")
    await conversation.wait_for_event("agent_message")
    (announced,) = [each for each in await messages(conversation) if each["content"]["type"] == "tool"]
    content = announced["content"]
    assert (content["tool"], content["args"], content["result"]) == ("grep", {"q": "x"}, None)
    await conversation.server.call("POST", f"{conversation.path}/cancel", 204)
    await conversation.wait_for_event("turn_end")
    (cancelled,) = await message_contents(conversation, "system", "tool")
    assert cancelled["status"] == "cancelled"
    await conversation.run_turn(call + "[[chunk later]]" + finish)
    of_both_turns = await message_contents(conversation, "system", "tool")
    content = of_both_turns[-1]
    assert len(of_both_turns) == 2
    assert (content["tool"], content["args"], content["result"]) == ("grep", {"q": "x"}, {"hits": 2})


async def test_a_filled_in_result_is_a_change_since_the_call_was_announced(
    conversation: SessionClient,
) -> None:
    finish = "[[tool_update toolCallId=c status=completed 'rawOutput=1']]"
    await conversation.run_turn(
        "[[tool toolCallId=c title=grep status=in_progress]] [[sleep 0.05]] [[plan one]] [[sleep 0.05]]"
        + finish
    )
    tool, text = [each for each in await messages(conversation) if each["role"] == "system"]
    assert tool["timestamp"] < text["timestamp"] < tool["updatedAt"]
    assert await messages(conversation, since=tool["timestamp"]) == [tool, text]
    assert await messages(conversation, since=text["timestamp"]) == [tool]
    assert await messages(conversation, since=tool["updatedAt"]) == []
    assert await messages(conversation, since=tool["timestamp"], newest="true", limit="1") == [text]


# The routes


@pytest.mark.parametrize("name", ["repoId", "repositoryId"])
async def test_creating_a_session_with_only_a_repository_starts_its_default_agent(
    limited_server: Server, repository: dict[str, Any], name: str
) -> None:
    session = await limited_server.call("POST", "/api/sessions", 201, json={name: repository["id"]})
    assert is_uuid(session["id"])
    assert (session["repoId"], session["status"]) == (repository["id"], "active")
    assert session["locationPath"] == repository["path"]
    assert is_time(session["createdAt"])
    (agent,) = session["workers"]
    assert (agent["type"], agent["agentId"], agent["state"]) == ("agent", "scripted", "spawning")
    await limited_server.call("DELETE", f"/api/sessions/{session['id']}", 200)


@pytest.mark.parametrize("name", ["repoId", "repositoryId"])
async def test_creating_a_session_with_a_type_and_no_agent_starts_none(
    limited_server: Server, repository: dict[str, Any], name: str
) -> None:
    body = {"type": "worktree", name: repository["id"]}
    session = await limited_server.call("POST", "/api/sessions", 201, json=body)
    assert (session["repoId"], session["workers"]) == (repository["id"], [])


async def test_every_filter_by_repository_has_both_names(
    conversation: SessionClient, repository: dict[str, Any]
) -> None:
    server = conversation.server
    await server.new_session()
    by_either_name = [
        await server.call("GET", "/api/sessions", 200, params={name: repository["id"], "status": "active"})
        for name in ("repoId", "repositoryId")
    ]
    assert by_either_name[0] == by_either_name[1]
    assert {each["repoId"] for each in by_either_name[0]["sessions"]} == {repository["id"]}
    routes = (await server.call("GET", "/api/openapi.json", 200))["paths"].values()
    filters = [{each["name"] for each in route.get("get", {}).get("parameters", [])} for route in routes]
    assert [names for names in filters if ("repoId" in names) != ("repositoryId" in names)] == []
    assert len([names for names in filters if "repositoryId" in names]) == 3


async def test_the_list_has_the_total_the_limit_and_the_offset(limited_server: Server) -> None:
    for _ in range(3):
        await limited_server.new_session()
    listing = await limited_server.call("GET", "/api/sessions", 200, params={"limit": 2, "offset": 1})
    assert set(listing) == {"sessions", "total", "limit", "offset"}
    assert (listing["limit"], listing["offset"], len(listing["sessions"])) == (2, 1, 2)
    assert listing["total"] >= 3


async def test_a_session_is_shown_and_an_unknown_one_is_404(conversation: SessionClient) -> None:
    detail = await conversation.server.call("GET", conversation.path, 200)
    assert {"id", "repoId", "status", "createdAt", "updatedAt", "messages", "repo"} <= set(detail)
    missing = await conversation.server.call("GET", f"/api/sessions/{UNKNOWN_ID}", 404)
    assert missing["error"] == "not_found"


async def test_a_prompt_is_accepted_before_its_turn_ends(conversation: SessionClient) -> None:
    prompted = await conversation.prompt("[[wait_cancel]]")
    assert set(prompted) == {"promptId", "seq", "queued"}
    assert (await messages(conversation))[-1]["content"] == {"type": "text", "text": "[[wait_cancel]]"}
    assert not [event for event in await conversation.events() if event["type"] == "turn_end"]
    await conversation.server.call("POST", f"{conversation.path}/cancel", 204)
    await conversation.wait_for_event("turn_end", stopReason="cancelled")
    assert (await message_contents(conversation, "system", "text"))[-1]["text"] == "the turn was cancelled"


async def test_messages_can_be_filtered_by_time(conversation: SessionClient) -> None:
    await conversation.run_turn("[[chunk one]]")
    before = await messages(conversation)
    await conversation.run_turn("[[chunk two]]")
    later = await messages(conversation, since=before[-1]["timestamp"])
    assert before + later == await messages(conversation)
    assert "two" in "".join(each["content"].get("text", "") for each in later)
    refused = await conversation.server.call("GET", f"{conversation.path}/messages?since=yesterday", 400)
    assert refused["error"] == "invalid"


async def test_delete_cancels_the_turn_ends_the_agent_and_answers_with_the_session(
    conversation: SessionClient,
) -> None:
    await conversation.prompt("[[wait_cancel]]")
    pid = (await conversation.worker())["pid"]
    session = await conversation.server.call("DELETE", conversation.path, 200)
    assert (session["id"], session["status"]) == (conversation.id, "cancelled")
    assert [worker["state"] for worker in session["workers"]] == ["terminated"]
    assert not Path(f"/proc/{pid}").exists()
    received = [
        message_of(record).get("method")
        for record in read_journal(conversation.server.home.parent / "scripted.journal")
        if record["dir"] == "in"
    ]
    assert received[-1] == "session/cancel"


# Limits


async def test_a_session_beyond_the_limit_is_refused_with_a_retry_time(limited_server: Server) -> None:
    created = [await SessionClient.begin(limited_server) for _ in range(MAX_SESSIONS)]
    body = {"locationPath": str(limited_server.workspace), "agentId": "scripted"}
    refused = await limited_server.http.post("/api/sessions", json=body)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    assert refused.json()["error"] == "too_many"
    assert str(MAX_SESSIONS) in refused.json()["message"]
    assert "try again" in refused.json()["message"]
    assert config.load(env={"HOME": "/"}).max_sessions == 5
    for each in created:
        await limited_server.call("DELETE", each.path, 200)


async def test_a_session_with_only_a_repository_counts_against_the_limit(
    limited_server: Server, repository: dict[str, Any]
) -> None:
    body = {"repoId": repository["id"]}
    created = [
        await limited_server.call("POST", "/api/sessions", 201, json=body) for _ in range(MAX_SESSIONS)
    ]
    refused = await limited_server.http.post("/api/sessions", json=body)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    for each in created:
        await limited_server.call("DELETE", f"/api/sessions/{each['id']}", 200)


async def test_a_freed_slot_can_be_used_and_is_logged(limited_server: Server) -> None:
    created = [await SessionClient.begin(limited_server) for _ in range(MAX_SESSIONS)]
    await limited_server.call("POST", f"{created[0].path}/complete", 200)
    created.append(await SessionClient.begin(limited_server))
    logged = [line for line in limited_server.output().splitlines() if "a slot is free" in line]
    assert created[0].id in logged[-1]
    for each in created:
        await limited_server.call("DELETE", each.path, 200)


# Idle sessions


@pytest_asyncio.fixture(loop_scope="session")
async def short_idle_backend(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    backend = ServerWithoutWeb(tmp_path, idle_seconds=1.0)
    backend.define_agent()
    async with backend.open():
        yield backend
    await asyncio.to_thread(end_processes_of, backend.home)


async def test_an_idle_session_is_cancelled_and_completed(short_idle_backend: ServerWithoutWeb) -> None:
    session = await short_idle_backend.session("scripted")
    snapshot = await until(session, lambda s: s.status is not SessionStatus.ACTIVE)
    assert snapshot.status is SessionStatus.COMPLETED
    assert snapshot.metadata == {"reason": "idle_timeout"}
    async with asyncio.timeout(60):
        while session.busy:
            await asyncio.sleep(0.01)
    records = [record for record in read_journal(short_idle_backend.journal) if record["dir"] == "in"]
    assert message_of(records[-1])["method"] == "session/cancel"


async def test_activity_resets_the_idle_time(short_idle_backend: ServerWithoutWeb) -> None:
    session = await short_idle_backend.session("scripted")
    for _ in range(4):
        await run_turn(session, "[[sleep 0.4]]")  # the turns together take longer than the idle time
        assert session.snapshot.status is SessionStatus.ACTIVE
    await until(session, lambda s: s.end_reason == "idle_timeout")


async def test_the_idle_time_is_set_in_minutes() -> None:
    assert config.load(env={"HOME": "/"}).idle_timeout == 30
    for text, minutes in {"7": 7, "0.25": 0.25, "1e3": 1000, "0": 0}.items():
        assert config.load(env={"HOME": "/", "AGENT_SESSION_IDLE_TIMEOUT": text}).idle_timeout == minutes
    for text in ("soon", "-1", "nan", "inf", "1e7"):
        with pytest.raises(Invalid, match="must be a number from 0 to 1000000"):
            config.load(env={"HOME": "/", "AGENT_SESSION_IDLE_TIMEOUT": text})


async def test_the_idle_time_may_be_a_fraction_of_a_minute(server: Server) -> None:
    await server.kill()
    server.set(AGENT_SESSION_IDLE_TIMEOUT="0.02")
    await server.start()
    await define_scripted(server)
    conversation = await SessionClient.begin(server)
    ended = await conversation.wait_for_event("session_end")
    assert (ended["data"]["status"], ended["data"]["reason"]) == ("completed", "idle_timeout")
    assert (await server.call("GET", conversation.path))["metadata"] == {"reason": "idle_timeout"}


# The schema


async def test_the_sessions_table_has_a_foreign_key_to_repositories(limited_server: Server) -> None:
    inspector = inspect(create_engine(f"sqlite:///{limited_server.home}/bullpen.db"))
    columns = {column["name"] for column in inspector.get_columns("sessions")}
    assert {"id", "repo_id", "status", "created_at", "updated_at"} <= columns
    assert inspector.get_pk_constraint("sessions")["constrained_columns"] == ["id"]
    assert [key["referred_table"] for key in inspector.get_foreign_keys("sessions")] == ["repositories"]


async def test_the_messages_table_has_a_foreign_key_to_sessions(limited_server: Server) -> None:
    inspector = inspect(create_engine(f"sqlite:///{limited_server.home}/bullpen.db"))
    columns = {column["name"] for column in inspector.get_columns("messages")}
    assert {"id", "session_id", "role", "content", "timestamp"} <= columns
    assert [key["referred_table"] for key in inspector.get_foreign_keys("messages")] == ["sessions"]


async def test_migrations_create_and_remove_the_indexes(limited_server: Server, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/bullpen.db"
    schema.prepare(url)

    def indexed() -> set[str]:
        inspector = inspect(create_engine(url))
        tables = set(inspector.get_table_names()) & {"sessions", "messages"}
        return {
            str(name) for table in tables for i in inspector.get_indexes(table) for name in i["column_names"]
        }

    assert {"session_id", "repo_id", "status", "timestamp"} <= indexed()
    schema.downgrade(url, "base")
    assert indexed() == set()
    schema.upgrade(url)
    assert {"session_id", "repo_id", "status", "timestamp"} <= indexed()
