"""Agents in a session: prompts, permissions, cancellation, failures and the events of each."""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from bullpen.domain.commands import AddWorker, restart_worker
from bullpen.domain.errors import Conflict, Invalid, NotFound
from bullpen.domain.events import Draft, WorkerFailed, WorkerReady
from bullpen.domain.snapshot import Snapshot
from bullpen.domain.states import Activity, SessionStatus, WorkerState
from support.scripted_agent.journal import prompts_in, read_journal
from support.server_without_web import ServerWithoutWeb, primary_agent, run_turn, send_prompt, until


def _is_active(snapshot: Snapshot, worker_id: str, run: int) -> bool:
    worker = snapshot.worker(worker_id)
    return worker.run == run and worker.state is WorkerState.ACTIVE


async def test_a_prompt_is_answered_and_everything_is_in_the_log_in_order(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    worker = await local_server.agent(session)
    assert worker.activity is Activity.IDLE
    await run_turn(
        session, "[[chunk 'Hello ']] [[thought hm]] [[plan one two]] [[tool title=look]] [[chunk world]]"
    )
    types = [event.type for event in await local_server.events(session)]
    expected = [
        "user_prompt",
        "turn_start",
        "agent_message",
        "agent_thought",
        "plan",
        "tool_call",
        "turn_end",
    ]
    positions = [types.index(type) for type in expected]
    assert positions == sorted(positions)
    assert await local_server.text(session) == "Hello world"
    assert await local_server.stop_reasons(session) == ["end_turn"]
    assert [event.seq for event in await local_server.events(session)] == list(range(1, len(types) + 1))
    assert session.snapshot.worker(worker.id).activity is Activity.IDLE


async def test_messages_have_a_role_a_type_and_the_fields_of_their_type(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    await run_turn(session, """[[chunk Hi]] [[plan one]] [[tool title=look 'rawInput={"a":1}']]""")
    messages = await local_server.messages(session)
    user, *others = messages
    assert (user["role"], user["type"]) == ("user", "text")
    assert {"role": "agent", "type": "text", "text": "Hi", "partial": False} in others
    plan = next(each for each in others if each["type"] == "plan")
    assert (plan["role"], plan["steps"][0]["content"]) == ("system", "one")
    (tool,) = [each for each in others if each["type"] == "tool"]
    assert (tool["role"], tool["tool"], tool["args"]) == ("system", "look", {"a": 1})
    assert tool["result"] == {}


async def test_the_first_prompt_of_a_session_without_an_agent_starts_one(
    local_server: ServerWithoutWeb,
) -> None:
    local_server.define_agent("claude")  # the first in the list of preferences, and installed
    session = await local_server.session()
    prompted = await send_prompt(session, "[[chunk Hi]]", prompt_id="first")
    assert prompted.queued
    assert primary_agent(session.snapshot).state is WorkerState.SPAWNING
    await until(session, lambda s: primary_agent(s).activity is Activity.IDLE and not s.queue.items)
    assert [fact.prompt_id for fact in await local_server.facts(session, "user_prompt")] == ["first"]
    await until(session, lambda s: not s.conversations[primary_agent(s).id].turn)
    assert await local_server.text(session) == "Hi"


async def test_the_same_prompt_id_is_one_prompt_and_other_text_is_a_conflict(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    answers = await asyncio.gather(*(send_prompt(session, "[[sleep 0.2]]", prompt_id="p") for _ in range(5)))
    assert len(set(answers)) == 1
    with pytest.raises(Conflict, match="another prompt"):
        await send_prompt(session, "other", prompt_id="p")
    await until(session, lambda s: primary_agent(s).activity is Activity.IDLE)
    assert await send_prompt(session, "[[sleep 0.2]]", prompt_id="p", busy="reject") == answers[0]
    assert prompts_in(local_server.journal) == ["[[sleep 0.2]]"]


async def test_a_permission_waits_and_its_first_answer_counts(local_server: ServerWithoutWeb) -> None:
    session = await local_server.session()
    worker = await local_server.agent(session)
    await send_prompt(session, "[[permission title=write]] [[chunk done]]")
    snapshot = await until(session, lambda s: s.permissions)
    assert snapshot.worker(worker.id).activity is Activity.ASKING
    id = snapshot.permissions[0].permission.id
    with pytest.raises(Invalid):
        await session.answer_permission(id, "perhaps", "ada")
    results = await asyncio.gather(
        *(session.answer_permission(id, "yes", user) for user in ("ada", "bob")), return_exceptions=True
    )
    assert [type(each) for each in results if each is not None] == [Conflict]
    await until(session, lambda s: s.worker(worker.id).activity is Activity.IDLE)
    facts = await local_server.facts(session, "permission")
    assert [fact.status for fact in facts] == ["pending", "selected"]
    with pytest.raises(NotFound):
        await session.answer_permission("nothing", "yes", "ada")


async def test_the_answer_to_a_question_reaches_the_agent(local_server: ServerWithoutWeb) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    await send_prompt(session, "[[question who]]")
    snapshot = await until(session, lambda s: s.questions)
    await session.answer_question(snapshot.questions[0].question.id, "accept", {"name": "Ada"}, "ada")
    await until(session, lambda s: primary_agent(s).activity is Activity.IDLE)
    assert '"name": "Ada"' in await local_server.text(session)


async def test_a_cancelled_turn_withdraws_its_permission_and_the_agent_takes_the_next_prompt(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    worker = await local_server.agent(session)
    await send_prompt(session, "[[chunk before]] [[permission title=x]] [[chunk never]]")
    await until(session, lambda s: s.permissions)
    await session.cancel_turn(None, "ada")
    await until(session, lambda s: s.worker(worker.id).activity is Activity.IDLE)
    assert await local_server.stop_reasons(session) == ["cancelled"]
    assert session.snapshot.permissions == []
    assert {
        "role": "system",
        "type": "text",
        "text": "the turn was cancelled",
    } in await local_server.messages(session)
    await session.cancel_turn(None, "ada")  # without a turn, cancelling does nothing
    await run_turn(session, "[[chunk after]]")
    assert await local_server.text(session) == "beforeafter"


async def test_the_mode_the_model_and_an_option_of_an_agent_can_be_set(
    local_server: ServerWithoutWeb,
) -> None:
    options = [{"id": "pace", "category": "model_config", "currentValue": "slow"}]
    modes = {"currentModeId": "ask", "availableModes": []}
    local_server.define_agent("set", {"agent": {"session": {"modes": modes, "configOptions": options}}})
    session = await local_server.session()
    worker = await local_server.agent(session, "set")
    await session.set_mode(worker.id, "auto")
    await session.set_model(worker.id, "large")
    await session.set_config_option(worker.id, "pace", "fast")
    snapshot = await until(session, lambda s: not s.conversations[worker.id].traffic.calls)
    acp = snapshot.conversations[worker.id].session
    assert acp is not None
    assert (acp.modes["currentModeId"], acp.models["currentModelId"]) == ("auto", "large")
    assert acp.config_options == [{"id": "pace", "currentValue": "fast"}]
    with pytest.raises(Invalid):
        await session.set_config_option(worker.id, "colour", "red")


async def test_an_agent_reads_and_writes_files_inside_the_workspace_only(
    local_server: ServerWithoutWeb,
) -> None:
    (local_server.workspace / "notes").write_text("one\ntwo\n")
    session = await local_server.session()
    await local_server.agent(session)
    await run_turn(session, "[[read notes]] [[write path=new/file content=hello]] [[read new/file]]")
    assert await local_server.text(session) == "read 'one\\ntwo\\n'read 'hello'"
    assert (local_server.workspace / "new/file").read_text() == "hello"
    assert [e.type for e in await local_server.events(session, "file_read", "file_write")] == [
        "file_read",
        "file_write",
        "file_read",
    ]
    await run_turn(session, "[[read ../journal]]")
    assert (await local_server.stop_reasons(session))[-1] == "error"


async def test_a_command_of_an_agent_runs_in_a_terminal_of_the_session(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    agent = await local_server.agent(session)
    await run_turn(session, "[[terminal 'echo hello; exit 3']]")
    assert "exit 3 said 'hello\\n'" in await local_server.text(session)
    terminal = next(w for w in session.snapshot.workers.values() if w.type == "terminal")
    assert terminal.command is not None
    assert terminal.command.owner == agent.id
    assert (terminal.exit_code, terminal.name) == (3, "echo hello; exit 3")
    assert terminal.state is WorkerState.TERMINATED


async def test_a_terminal_of_an_agent_ends_when_the_turn_is_cancelled(local_server: ServerWithoutWeb) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    await send_prompt(session, "[[terminal 'sleep 1000']]")
    snapshot = await until(
        session, lambda s: [w for w in s.workers.values() if w.type == "terminal" and w.state == "active"]
    )
    pid = next(w.pid for w in snapshot.workers.values() if w.type == "terminal")
    await session.cancel_turn(None, "ada")
    async with asyncio.timeout(60):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.01)
    await until(session, lambda s: primary_agent(s).activity is Activity.IDLE)


async def test_an_agent_that_crashes_in_a_turn_fails_with_its_last_stderr_output(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    worker = await local_server.agent(session)
    await send_prompt(session, "[[stderr 'out of luck']] [[chunk half]] [[exit code=7]]")
    await session.enqueue("later")
    snapshot = await until(session, lambda s: s.worker(worker.id).state is WorkerState.FAILED)
    failed = snapshot.worker(worker.id)
    assert (failed.exit_code, failed.signal) == (7, None)
    assert failed.error == "it crashed (exit code 7): out of luck"
    assert await local_server.text(session) == "half"
    assert await local_server.stop_reasons(session) == ["error"]
    assert snapshot.queue.paused
    assert snapshot.status is SessionStatus.ACTIVE
    assert (await local_server.facts(session, "worker_failed"))[0].stderr == "out of luck"


async def test_a_session_ends_when_the_agent_it_was_created_with_never_answers(
    local_server: ServerWithoutWeb,
) -> None:
    local_server.define_agent("broken", {"start": ["exit code=3"]})
    session = await local_server.session("broken")
    snapshot = await until(session, lambda s: s.status is not SessionStatus.ACTIVE)
    assert (snapshot.status, snapshot.end_reason) == (SessionStatus.ERROR, "error")
    assert snapshot.workers[next(iter(snapshot.workers))].state is WorkerState.FAILED
    assert any("exit code 3" in each["text"] for each in await local_server.messages(session))


async def test_a_session_stays_active_when_its_agent_crashes_during_its_first_answer(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session("scripted")
    await send_prompt(session, "[[chunk half]] [[crash]]")
    snapshot = await until(session, lambda s: primary_agent(s).state is WorkerState.FAILED)
    assert snapshot.status is SessionStatus.ACTIVE


async def test_an_agent_added_later_never_ends_its_session(local_server: ServerWithoutWeb) -> None:
    local_server.define_agent("broken", {"start": ["exit code=3"]})
    session = await local_server.session("scripted")
    order = AddWorker(
        worker_id="later", type="agent", agent_id="broken", workspace=str(local_server.workspace)
    )
    await session.add_worker(order)
    snapshot = await until(session, lambda s: s.worker("later").state is WorkerState.FAILED)
    assert snapshot.status is SessionStatus.ACTIVE
    assert primary_agent(snapshot).alive


async def test_an_agent_that_needs_a_login_fails_with_the_command_to_run(
    local_server: ServerWithoutWeb,
) -> None:
    local_server.define_agent(
        "closed",
        {"on": {"session/new": [{"do": "error", "code": -32000, "text": "who are you?"}]}},
        loginCommand=["sh", "-c", "echo welcome $KEY"],
        env={"KEY": "sesame"},
    )
    session = await local_server.session("closed")
    snapshot = await until(session, lambda s: primary_agent(s).state is WorkerState.FAILED)
    assert "run: sh -c 'echo welcome $KEY'" in (primary_agent(snapshot).error or "")
    assert snapshot.status is SessionStatus.ACTIVE
    terminal = await session.log_in(primary_agent(snapshot).id)
    await until(session, lambda s: s.worker(terminal.id).state is WorkerState.EXITED)
    _, output = local_server.sessions.services.read_tail(terminal.id, 1, 100)
    assert output == b"welcome sesame\r\n"
    (command,) = await local_server.facts(session, "worker_command")
    assert "sesame" not in str(command.to_data())


async def test_a_restarted_agent_continues_its_conversation_or_starts_a_new_one(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    worker = await local_server.agent(session)
    await run_turn(session, "[[chunk first]]")
    await session.restart(continue_conversation=True)
    await until(session, lambda s: s.worker(worker.id).state is WorkerState.ACTIVE)
    again = session.snapshot.worker(worker.id)
    assert (again.run, again.pid != worker.pid) == (2, True)
    await session.restart(continue_conversation=False)
    await until(session, lambda s: _is_active(s, worker.id, 3))
    origins = [fact.how for fact in await local_server.facts(session, "agent_session")]
    assert origins == ["new", "resume", "new"]
    assert await local_server.text(session) == "first"


async def test_an_agent_that_cannot_resume_gets_a_recap_of_its_conversation(
    local_server: ServerWithoutWeb,
) -> None:
    local_server.define_agent("forgetful", {"agent": {"initialize": {"agentCapabilities": {}}}})
    session = await local_server.session()
    worker = await local_server.agent(session, "forgetful")
    await run_turn(session, "remember [[chunk blue]]")
    await session.restart(continue_conversation=True)
    await until(session, lambda s: s.worker(worker.id).state is WorkerState.ACTIVE)
    await run_turn(session, "[[chunk again]]")
    assert "remember" in prompts_in(local_server.journal)[-1]
    assert "Assistant: blue" in prompts_in(local_server.journal)[-1]
    assert (await local_server.facts(session, "user_prompt"))[-1].text == "[[chunk again]]"
    await run_turn(session, "[[chunk third]]")
    assert prompts_in(local_server.journal)[-1] == "[[chunk third]]"


async def test_a_crashed_agent_is_restarted_automatically_three_times(local_server: ServerWithoutWeb) -> None:
    local_server.define_agent("phoenix", {}, restart=True)
    session = await local_server.session()
    worker = await local_server.agent(session, "phoenix")
    for run in (1, 2, 3):
        await send_prompt(session, "[[crash]]")
        await until(session, partial(_is_active, worker_id=worker.id, run=run + 1))
    await send_prompt(session, "[[crash]]")
    await until(session, lambda s: s.worker(worker.id).state is WorkerState.FAILED)
    assert session.snapshot.worker(worker.id).run == 4
    assert len([r for r in read_journal(local_server.journal) if r["dir"] == "note"]) == 4


async def test_automatic_restarts_of_an_agent_are_counted_across_restarts_of_the_server(
    closed_server: ServerWithoutWeb,
) -> None:
    closed_server.define_agent("phoenix", {}, restart=True)
    async with closed_server.open() as local_server:
        session = await local_server.session()
        worker = await local_server.agent(session, "phoenix")
        for run in (1, 2):
            await send_prompt(session, "[[crash]]")
            await until(session, partial(_is_active, worker_id=worker.id, run=run + 1))
    async with closed_server.open() as local_server:
        session = await local_server.sessions.get(session.id)
        await send_prompt(session, "[[crash]]")
        await until(session, partial(_is_active, worker_id=worker.id, run=4))
        await send_prompt(session, "[[crash]]")
        await until(session, lambda s: s.worker(worker.id).state is WorkerState.FAILED)
        assert session.snapshot.worker(worker.id).run == 4


@pytest.mark.parametrize("kind", ["acp", "pty"])
async def test_the_next_server_restarts_a_crashed_agent_when_the_first_was_killed_before_it_could(
    closed_server: ServerWithoutWeb, kind: str
) -> None:
    if kind == "pty":
        closed_server.registry.add("scripted", {"name": "Cat", "kind": "pty", "command": ["cat"]})
    async with closed_server.open() as local_server:
        session = await local_server.session()
        worker = await local_server.agent(session, agent_kind=kind)
        os.kill(worker.pid or 0, signal.SIGKILL)
        last = await until(session, lambda s: s.worker(worker.id).state is WorkerState.FAILED)
    spawning = restart_worker(last, worker.id)
    crash = WorkerFailed(error="it was ended by SIGKILL", signal="SIGKILL", again=True)
    ended = [Draft(fact, worker.id, worker.role) for fact in (WorkerReady(pid=1), crash)]
    await closed_server.append(session.id, spawning, *ended)  # no keeper has this run
    async with closed_server.open() as local_server:
        session = await local_server.sessions.get(session.id)
        await until(session, partial(_is_active, worker_id=worker.id, run=3))
        spawned = await local_server.facts(session, "worker_spawning")
        assert [fact.automatic for fact in spawned] == [False, False, True]


async def test_a_session_whose_first_agent_always_crashes_ends_after_the_last_automatic_restart(
    local_server: ServerWithoutWeb,
) -> None:
    local_server.define_agent("phoenix", {}, restart=True)
    session = await local_server.session("phoenix")
    worker = primary_agent(session.snapshot)
    for run in (1, 2, 3, 4):
        await until(session, partial(_is_active, worker_id=worker.id, run=run))
        assert session.snapshot.status is SessionStatus.ACTIVE
        await send_prompt(session, "[[crash]]")
    await until(session, lambda s: s.status is SessionStatus.ERROR)
    assert not session.snapshot.live


async def test_an_agent_that_crashed_too_often_is_not_restarted_by_the_next_server(
    closed_server: ServerWithoutWeb,
) -> None:
    closed_server.define_agent("phoenix", {}, restart=True)
    async with closed_server.open() as local_server:
        session = await local_server.session()
        worker = await local_server.agent(session, "phoenix")
        for run in (1, 2, 3):
            await send_prompt(session, "[[crash]]")
            await until(session, partial(_is_active, worker_id=worker.id, run=run + 1))
        await send_prompt(session, "[[crash]]")
        await until(session, lambda s: s.worker(worker.id).state is WorkerState.FAILED)
        assert not session.snapshot.live
    async with closed_server.open() as local_server:
        session = await local_server.sessions.get(session.id)
        assert session.snapshot.worker(worker.id).run == 4
        assert session.snapshot.worker(worker.id).state is WorkerState.FAILED


async def test_a_new_session_continues_the_last_conversation_of_its_directory(
    local_server: ServerWithoutWeb,
) -> None:
    first = await local_server.session("scripted")
    await until(first, lambda s: primary_agent(s).state is WorkerState.ACTIVE)
    before = first.snapshot.conversations[primary_agent(first.snapshot).id].acp_session_id
    await run_turn(first, "[[chunk hello]]")
    await first.end(SessionStatus.COMPLETED, "user_request")
    second = await local_server.session("scripted", continue_conversation=True)
    await until(second, lambda s: primary_agent(s).state is WorkerState.ACTIVE)
    facts = await local_server.facts(second, "agent_session")
    assert [(fact.how, fact.acp_session_id) for fact in facts] == [("continue", before), ("resume", before)]
    third = await local_server.session("scripted")
    await until(third, lambda s: primary_agent(s).state is WorkerState.ACTIVE)
    assert [fact.how for fact in await local_server.facts(third, "agent_session")] == ["new"]


async def test_an_agent_that_ends_with_exit_code_0_has_exited_and_can_be_restarted(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    worker = await local_server.agent(session)
    await send_prompt(session, "[[answer]] [[exit code=0]]")
    snapshot = await until(session, lambda s: not s.worker(worker.id).alive)
    assert (snapshot.worker(worker.id).state, snapshot.worker(worker.id).exit_code) == (WorkerState.EXITED, 0)
    await session.restart_worker(worker.id)
    await until(session, lambda s: _is_active(s, worker.id, 2))


async def test_a_purge_during_a_turn_does_not_disturb_another_session(local_server: ServerWithoutWeb) -> None:
    session, other = await local_server.session("scripted"), await local_server.session("scripted")
    await send_prompt(session, "[[stream n=1000 delay=0.001]]")
    await send_prompt(other, "[[stream n=100 delay=0.005]] [[chunk ' the end']]")
    await until(session, lambda s: primary_agent(s).state is WorkerState.ACTIVE)
    await session.end(SessionStatus.CANCELLED, "cancelled")
    await local_server.sessions.purge(session.id)
    with pytest.raises(NotFound):
        await local_server.sessions.get(session.id)
    await until(other, lambda s: primary_agent(s).activity is Activity.IDLE and not s.queue.items)
    assert (await local_server.text(other)).endswith(" the end")
