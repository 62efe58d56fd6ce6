"""The queue of a session: busy agents, pauses, and the order of messages."""

import asyncio

import pytest

from bullpen.domain.errors import Conflict, EmptyMessage, QueueFull
from bullpen.domain.queue import QueueSettings
from bullpen.domain.states import Activity, WorkerState
from support.scripted_agent.journal import prompts_in
from support.server_without_web import ServerWithoutWeb, is_idle, primary_agent, run_turn, send_prompt, until


async def test_a_prompt_to_a_busy_agent_waits_is_refused_or_interrupts_the_turn(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    assert not (await send_prompt(session, "1 [[wait_cancel]]")).queued
    assert (await send_prompt(session, "2")).queued
    with pytest.raises(Conflict, match="busy"):
        await send_prompt(session, "3", busy="reject")
    assert (await send_prompt(session, "4", busy="interrupt")).queued
    await until(session, is_idle)
    assert prompts_in(local_server.journal) == ["1 [[wait_cancel]]", "4", "2"]
    assert await local_server.stop_reasons(session) == ["cancelled", "end_turn", "end_turn"]


async def test_a_queued_message_for_one_agent_does_not_delay_prompts_to_another(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    other = await local_server.agent(session)
    await send_prompt(session, "[[wait_cancel]]")
    assert (await send_prompt(session, "waits")).queued
    assert not (await send_prompt(session, "at once", worker_id=other.id, busy="reject")).queued
    await session.cancel_turn(None, "ada")
    await until(session, lambda s: s.queue.paused and is_idle(s))
    assert sorted(prompts_in(local_server.journal)) == ["[[wait_cancel]]", "at once"]


async def test_a_message_for_an_idle_agent_is_sent_immediately(local_server: ServerWithoutWeb) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    item = await session.enqueue("hello", client_id="ada")
    await until(session, lambda s: not s.queue.items and is_idle(s))
    (prompt,) = await local_server.facts(session, "user_prompt")
    assert (prompt.text, prompt.prompt_id, prompt.sender) == ("hello", item.id, "ada")
    types = [event.type for event in await local_server.events(session)]
    assert types.index("queue_sent") < types.index("user_prompt")


async def test_a_failed_or_cancelled_turn_pauses_the_queue_until_it_is_resumed(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    for bad in ("[[wait_cancel]]", "[[sleep 0.2]] [[error]]"):
        await send_prompt(session, bad)
        await session.enqueue("after")
        if "cancel" in bad:
            await session.cancel_turn(None, "ada")
        await until(session, lambda s: s.queue.paused and primary_agent(s).activity is Activity.IDLE)
        assert [item.state for item in session.snapshot.queue.items] == ["queued"]
        await session.resume_queue()
        await until(session, lambda s: not s.queue.items and is_idle(s))
    assert prompts_in(local_server.journal).count("after") == 2


async def test_a_message_sent_now_interrupts_the_turn_and_precedes_the_others(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    await send_prompt(session, "[[wait_cancel]]")
    await session.enqueue("first")
    second = await session.enqueue("second")
    await session.send_now(second.id)
    await until(session, lambda s: not s.queue.items and is_idle(s))
    assert prompts_in(local_server.journal)[1:] == ["second", "first"]


async def test_the_queue_is_bounded_and_its_messages_can_be_edited_moved_and_removed(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    await session.set_queue_settings(QueueSettings(max_size=3))
    await session.pause_queue()
    a, b, c = [await session.enqueue(text) for text in "abc"]
    with pytest.raises(QueueFull):
        await session.enqueue("d")
    with pytest.raises(EmptyMessage):
        await session.enqueue("  ")
    await session.edit_queued(b.id, message="B")
    await session.move_queued(c.id, "up")
    await session.remove_queued(a.id)
    assert [item.message for item in session.snapshot.queue.items] == ["c", "B"]
    await session.clear_queue()
    assert session.snapshot.queue.items == ()


async def test_a_message_that_cannot_be_sent_fails_and_does_not_block_the_queue(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    bad = await session.enqueue("look", image_ids=("nothing",))
    await until(session, lambda s: s.queue.item(bad.id).state == "failed")
    await run_turn(session, "hello")
    assert prompts_in(local_server.journal) == ["hello"]


async def test_the_delay_between_queued_messages_is_kept(local_server: ServerWithoutWeb) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    await session.set_queue_settings(QueueSettings(delay_seconds=0.3))
    await send_prompt(session, "one")
    await session.enqueue("two")
    await until(session, lambda s: not s.queue.items and is_idle(s))
    end = (await local_server.events(session, "turn_end"))[0].timestamp
    start = (await local_server.events(session, "turn_start"))[1].timestamp
    assert start - end >= 300


async def test_queued_messages_are_sent_after_a_restart_of_the_server(
    closed_server: ServerWithoutWeb,
) -> None:
    async with closed_server.open() as local_server:
        session = await local_server.session()
        worker = await local_server.agent(session)
        await send_prompt(session, "[[sleep 0.5]]")
        await session.enqueue("later")
    async with closed_server.open() as local_server:
        session = await local_server.sessions.get(session.id)
        await until(session, lambda s: not s.queue.items and is_idle(s))
        assert session.snapshot.worker(worker.id).state is WorkerState.ACTIVE
        assert session.snapshot.worker(worker.id).pid == worker.pid
    assert prompts_in(closed_server.journal) == ["[[sleep 0.5]]", "later"]


async def test_thirty_concurrent_callers_cause_one_prompt_each(local_server: ServerWithoutWeb) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    await session.set_queue_settings(QueueSettings(max_size=200))
    await asyncio.gather(*(send_prompt(session, f"{number}") for number in range(30)))
    await until(session, is_idle)
    assert sorted(prompts_in(local_server.journal), key=int) == [f"{number}" for number in range(30)]
