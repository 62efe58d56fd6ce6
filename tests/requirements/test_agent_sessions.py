"""Document 001, sessions over REST and ACP: requirements 13 to 43."""

import shutil
import sqlite3
import uuid
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bullpen.store import schema
from requirements.conftest import register
from support.commands import Bullpen
from support.scripted_agent.journal import message_of, read_journal
from support.server import Server
from support.session_client import SessionClient, define_scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNKNOWN = "00000000-0000-4000-8000-000000000000"
TOOL = """[[tool toolCallId=c title=grep 'rawInput={"q":"x"}' status=in_progress]]"""
RESULT = """[[tool_update toolCallId=c status=completed 'rawOutput={"hits":2}']]"""


def rows(server: Server, query: str, *values: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{server.home}/bullpen.db?mode=ro", uri=True)) as database:
        return database.execute(query, values).fetchall()


async def messages(talk: SessionClient, **query: Any) -> list[dict[str, Any]]:
    answer = await talk.server.call("GET", f"{talk.path}/messages", 200, params=query)
    found: list[dict[str, Any]] = answer["messages"]
    return found


async def contents(talk: SessionClient, role: str, type: str) -> list[dict[str, Any]]:
    found = [each for each in await messages(talk) if each["role"] == role]
    return [each["content"] for each in found if each["content"]["type"] == type]


def logged(server: Server, text: str) -> list[str]:
    return [line for line in server.output().splitlines() if text in line]


async def test_r13_a_session_row_has_a_uuid_a_repository_a_status_and_times(
    talk: SessionClient, repo: dict[str, Any]
) -> None:
    query = "SELECT id, repo_id, status, created_at <= updated_at FROM sessions WHERE id = ?"
    assert rows(talk.server, query, talk.id) == [(str(uuid.UUID(talk.id)), repo["id"], "active", 1)]
    keys = rows(talk.server, 'SELECT "table", "from" FROM pragma_foreign_key_list(\'sessions\')')
    assert ("repositories", "repo_id") in keys


async def test_r14_a_message_row_has_a_uuid_a_session_a_role_content_and_a_time(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk hello]] [[plan one]]")
    query = "SELECT id, role, json_valid(content), timestamp > 0 FROM messages WHERE session_id = ?"
    found = rows(talk.server, query, talk.id)
    assert {role for _, role, _, _ in found} == {"user", "agent", "system"}
    assert all(id == str(uuid.UUID(id)) and is_json and has_time for id, _, is_json, has_time in found)


async def test_r15_a_session_is_read_with_its_messages_in_order_and_its_repository(
    talk: SessionClient, repo: dict[str, Any]
) -> None:
    await talk.run_turn("[[chunk one]]")
    await talk.run_turn("[[chunk two]]")
    detail = await talk.server.call("GET", talk.path, 200)
    texts = [each["content"]["text"] for each in detail["messages"]]
    assert texts == ["[[chunk one]]", "one", "[[chunk two]]", "two"]
    assert (detail["repo"]["id"], detail["repo"]["path"]) == (repo["id"], repo["path"])


async def test_r16_an_active_session_accepts_prompts_and_its_update_time_follows(talk: SessionClient) -> None:
    before = await talk.server.call("GET", talk.path, 200)
    await talk.run_turn("[[chunk x]]")
    after = await talk.server.call("GET", talk.path, 200)
    assert (before["status"], after["status"]) == ("active", "active")
    assert after["updatedAt"] > before["updatedAt"]


async def test_r17_a_completed_session_refuses_prompts(shared: Server) -> None:
    talk = await SessionClient.begin(shared)
    ended = await shared.call("POST", f"{talk.path}/complete", 200)
    assert (ended["status"], ended["updatedAt"] >= ended["createdAt"]) == ("completed", True)
    assert "completed" in (await talk.prompt("more", 409))["message"]


async def test_r18_a_cancelled_session_has_a_system_message_with_the_reason(shared: Server) -> None:
    talk = await SessionClient.begin(shared)
    await shared.call("DELETE", talk.path, 200)
    assert (await shared.call("GET", talk.path))["status"] == "cancelled"
    assert "cancelled" in (await contents(talk, "system", "text"))[-1]["text"]


async def test_r19_a_session_whose_agent_crashes_at_its_start_is_an_error_with_details(
    shared: Server,
) -> None:
    body = {"name": "Broken", "kind": "acp", "command": ["sh", "-c", "echo out of luck >&2; exit 3"]}
    await shared.call("PUT", "/api/agents/broken", 200, json=body)
    talk = SessionClient(shared, await shared.new_session(agentId="broken"))
    await talk.wait_for_event("session_end", status="error")
    details = [each["text"] for each in await contents(talk, "system", "text")]
    assert any("exit code 3" in text and "out of luck" in text for text in details)
    await talk.prompt("more", 409)


async def test_r20_sessions_are_listed_newest_first_without_messages_twenty_on_a_page(
    shared: Server,
) -> None:
    for _ in range(21):
        await shared.new_session(type="quick")
    listed = await shared.call("GET", "/api/sessions", 200)
    times = [each["createdAt"] for each in listed["sessions"]]
    assert (len(times), times, listed["limit"]) == (20, sorted(times, reverse=True), 20)
    assert not any("messages" in each for each in listed["sessions"])


async def test_r21_the_list_is_filtered_by_repository(talk: SessionClient, repo: dict[str, Any]) -> None:
    await talk.server.new_session(type="quick")  # has no repository
    listed = await talk.server.call("GET", f"/api/sessions?repoId={repo['id']}", 200)
    assert talk.id in [each["id"] for each in listed["sessions"]]
    assert {each["repoId"] for each in listed["sessions"]} == {repo["id"]}


async def test_r22_the_list_is_filtered_by_several_statuses(shared: Server) -> None:
    await shared.new_session()  # is active
    for ending in ("complete", None):
        path = f"/api/sessions/{(await shared.new_session())['id']}"
        await (shared.call("POST", f"{path}/complete") if ending else shared.call("DELETE", path))
    listed = await shared.call("GET", "/api/sessions?status=completed,cancelled&limit=1000", 200)
    assert {each["status"] for each in listed["sessions"]} == {"completed", "cancelled"}


async def test_r23_the_repository_exists_and_lies_inside_the_workspace_root(
    shared: Server, tmp_path: Path
) -> None:
    unknown = await shared.call("POST", "/api/sessions", 404, json={"repoId": UNKNOWN})
    assert UNKNOWN in unknown["message"]
    moved = await register(shared, "moved")
    shutil.move(moved["path"], tmp_path / "outside")
    Path(moved["path"]).symlink_to(tmp_path / "outside")
    await shared.call("POST", "/api/sessions", 403, json={"repoId": moved["id"]})
    await shared.call("POST", "/api/repositories", 403, json={"path": str(tmp_path / "outside")})


async def test_r24_the_agent_starts_in_its_workspace_which_is_logged(
    talk: SessionClient, repo: dict[str, Any]
) -> None:
    worker = await talk.worker()
    records = read_journal(talk.server.home.parent / "scripted.journal")
    received = [message_of(each) for each in records if each["dir"] == "in"]
    opened = [each["params"]["cwd"] for each in received if each.get("method") == "session/new"]
    assert opened[-1] == repo["path"]
    assert any(
        worker["id"] in line and repo["path"] in line for line in logged(talk.server, "starting an agent")
    )


@pytest.mark.parametrize("escape", ["..", "a/../../x", "link", "/etc"])
async def test_r25_a_path_out_of_the_root_is_refused_and_logged(shared: Server, escape: str) -> None:
    link = shared.workspace / "link"
    if not link.is_symlink():
        link.symlink_to("/etc")
    path = str(shared.workspace / escape)
    await shared.call("POST", "/api/sessions", 403, json={"locationPath": path})
    assert path in logged(shared, "security")[-1]


async def test_r26_the_content_of_a_prompt_is_its_text(talk: SessionClient) -> None:
    await talk.run_turn("user's prompt")
    assert await contents(talk, "user", "text") == [{"type": "text", "text": "user's prompt"}]


async def test_r27_the_content_of_an_answer_is_text_that_may_be_partial(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk 'agent ']] [[sleep 0.2]] [[chunk response]]")
    answers = await contents(talk, "agent", "text")
    assert "".join(each["text"] for each in answers) == "agent response"
    assert [each["partial"] for each in answers] == [*[True] * (len(answers) - 1), False]


async def test_r28_the_content_of_a_plan_is_its_steps(talk: SessionClient) -> None:
    await talk.run_turn("[[plan 'look mend']]")
    (plan,) = await contents(talk, "system", "plan")
    assert [step["content"] for step in plan["steps"]] == ["look", "mend"]


async def test_r29_the_content_of_a_tool_call_is_its_name_arguments_and_result(talk: SessionClient) -> None:
    await talk.run_turn(f"{TOOL} {RESULT}")
    (tool,) = await contents(talk, "system", "tool")
    assert (tool["tool"], tool["args"], tool["result"]) == ("grep", {"q": "x"}, {"hits": 2})


async def test_r30_a_session_is_created_with_its_repository_alone(
    shared: Server, repo: dict[str, Any]
) -> None:
    session = await shared.call("POST", "/api/sessions", 201, json={"repoId": repo["id"]})
    assert (session["repoId"], session["status"]) == (repo["id"], "active")
    assert {"id", "createdAt"} <= set(session)
    assert [each["agentId"] for each in session["workers"]] == ["scripted"]
    await shared.call("DELETE", f"/api/sessions/{session['id']}", 200)


async def test_r31_the_list_has_sessions_total_limit_and_offset(talk: SessionClient) -> None:
    query = f"repoId={(await talk.server.call('GET', talk.path))['repoId']}&status=active&limit=10&offset=0"
    listed = await talk.server.call("GET", f"/api/sessions?{query}", 200)
    assert set(listed) == {"sessions", "total", "limit", "offset"}
    assert (listed["total"], listed["limit"], listed["offset"]) == (len(listed["sessions"]), 10, 0)


async def test_r32_a_session_is_read_by_its_id_or_is_not_found(talk: SessionClient) -> None:
    assert (await talk.server.call("GET", talk.path, 200))["messages"] == []
    await talk.server.call("GET", f"/api/sessions/{UNKNOWN}", 404)


async def test_r33_a_prompt_is_accepted_before_its_turn_ends(talk: SessionClient) -> None:
    await talk.prompt("[[wait_cancel]]", 202)
    assert await contents(talk, "user", "text") == [{"type": "text", "text": "[[wait_cancel]]"}]
    assert not [each for each in await talk.events() if each["type"] == "turn_end"]


async def test_r34_messages_are_filtered_by_time(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk one]]")
    first = await messages(talk)
    await talk.run_turn("[[chunk two]]")
    later = await messages(talk, since=first[-1]["timestamp"])
    assert first + later == await messages(talk)
    assert [each["content"]["text"] for each in later] == ["[[chunk two]]", "two"]


async def test_r35_delete_cancels_the_turn_and_ends_the_agent(shared: Server) -> None:
    talk = await SessionClient.begin(shared)
    await talk.prompt("[[wait_cancel]]")
    pid = (await talk.worker())["pid"]
    session = await shared.call("DELETE", talk.path, 200)
    assert (session["id"], session["status"]) == (talk.id, "cancelled")
    assert not Path(f"/proc/{pid}").exists()


async def test_r36_the_sixth_active_session_is_refused_with_a_retry_time(
    shared: Server, repo: dict[str, Any]
) -> None:
    body = {"repoId": repo["id"]}
    created = [await shared.call("POST", "/api/sessions", 201, json=body) for _ in range(5)]
    sixth = await shared.http.post("/api/sessions", json=body)
    assert (sixth.status_code, sixth.headers["retry-after"]) == (429, "60")
    assert "limit" in sixth.json()["message"]
    assert "try again" in sixth.json()["message"]
    for each in created:
        await shared.call("DELETE", f"/api/sessions/{each['id']}", 200)


async def test_r37_a_freed_slot_can_be_used_and_is_logged(shared: Server, repo: dict[str, Any]) -> None:
    body = {"repoId": repo["id"]}
    created = [await shared.call("POST", "/api/sessions", 201, json=body) for _ in range(5)]
    await shared.call("POST", f"/api/sessions/{created[0]['id']}/complete", 200)
    created.append(await shared.call("POST", "/api/sessions", 201, json=body))
    assert any(created[0]["id"] in line for line in logged(shared, "a slot is free"))
    for each in created:
        await shared.call("DELETE", f"/api/sessions/{each['id']}", 200)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def impatient(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A server that ends idle sessions after a second and a half."""
    directory = tmp_path_factory.mktemp("impatient")
    (directory / "workspace").mkdir()
    settings = {"AGENT_SESSION_IDLE_TIMEOUT": "0.025"}
    server = Server(directory / "home", directory / "workspace", settings)
    await server.start()
    await define_scripted(server)
    yield server
    await server.close()


async def test_r38_an_idle_session_is_cancelled_and_completed(impatient: Server) -> None:
    talk = await SessionClient.begin(impatient)
    await talk.wait_for_event("session_end")
    session = await impatient.call("GET", talk.path, 200)
    assert (session["status"], session["metadata"]) == ("completed", {"reason": "idle_timeout"})
    assert [each["data"]["method"] for each in await talk.events() if each["type"] == "notice_sent"] == [
        "session/cancel"
    ]


async def test_r39_activity_resets_the_idle_time(impatient: Server) -> None:
    talk = await SessionClient.begin(impatient)
    for _ in range(4):
        await talk.run_turn("[[sleep 0.5]] [[chunk x]]")  # together longer than the idle time
    assert (await impatient.call("GET", talk.path, 200))["status"] == "active"


async def test_r40_the_idle_time_is_a_setting_in_minutes(shared: Server, impatient: Server) -> None:
    for server, minutes in ((shared, 30), (impatient, 0.025)):
        settings = (await server.call("GET", "/api/settings", 200))["startedWith"]
        assert float(settings["idle_timeout"]["value"]) == minutes


async def test_r41_the_session_model_has_its_fields_and_statuses(shared: Server) -> None:
    columns = {name for (name,) in rows(shared, "SELECT name FROM pragma_table_info('sessions')")}
    assert {"id", "repo_id", "status", "created_at", "updated_at"} <= columns
    ((created,),) = rows(shared, "SELECT sql FROM sqlite_master WHERE name = 'sessions'")
    assert "status IN ('active', 'completed', 'cancelled', 'error')" in created


async def test_r42_the_message_model_has_its_fields_and_roles(shared: Server) -> None:
    columns = {name for (name,) in rows(shared, "SELECT name FROM pragma_table_info('messages')")}
    assert {"id", "session_id", "role", "content", "timestamp"} <= columns
    ((created,),) = rows(shared, "SELECT sql FROM sqlite_master WHERE name = 'messages'")
    assert "role IN ('user', 'agent', 'system')" in created
    assert rows(shared, "SELECT \"table\" FROM pragma_foreign_key_list('messages')") == [("sessions",)]


async def test_r43_migrations_create_tables_and_indexes_and_can_be_reversed(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    file = tmp_path / "home" / "bullpen.db"
    bullpen = Bullpen(
        {"HOME": str(tmp_path), "BULLPEN_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    )
    query = """SELECT DISTINCT info.name FROM sqlite_master AS listed, pragma_index_info(listed.name) AS info
        WHERE listed.type = 'index' AND listed.tbl_name IN ('sessions', 'messages') AND info.seqno = 0"""

    def indexed() -> set[str]:
        with closing(sqlite3.connect(file)) as database:
            return {name for (name,) in database.execute(query)}

    assert (await bullpen("db", "upgrade")).code == 0
    assert {"session_id", "repo_id", "status", "timestamp"} <= indexed()
    assert (await bullpen("db", "downgrade", "base", "--yes")).code == 0
    assert indexed() == set()
    assert schema.current(f"sqlite:///{file}") is None
