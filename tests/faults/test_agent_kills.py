"""The server is killed while an agent works: no message to or from it is lost, repeated or reordered."""

import asyncio
import os
import random
import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.wire.browser import read_event, session_json
from support.retrying_client import RetryingClient, define_scripted, retry_until_answered
from support.scripted_agent.journal import prompts_in, read_journal
from support.server import Server

CHUNKS = 2000
SHARES = 4 if os.environ.get("BULLPEN_FAULTS") == "full" else 1  # agents, each with a share of the kills


async def check_copies(clients: list[RetryingClient]) -> None:
    """Check that every client has the whole log, and that folding it gives the session the server returns."""
    log = await clients[0].stored_events()
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    for client in clients:
        await client.until(lambda events: len(events) >= len(log))
        assert client.events == log
    folded = session_json(fold_all(Snapshot(id=clients[0].id), map(read_event, log)))
    detail = await clients[0].get()
    for worker in detail["workers"]:
        del worker["foreground"]  # not part of the log
    assert {name: detail[name] for name in folded} == folded


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"<(\d+)>", text)]


def _script(number: int, chunks: int) -> str:
    half = chunks // 2
    return (
        f"{number} [[stream n={half} delay=0.002]] [[write path=file-{number} content=w{number}]] "
        f"[[permission title=t{number}]] [[stream n={chunks - half} delay=0.002]] "
        f"[[terminal 'echo once >> ran-{number}']]"
    )


@pytest.mark.parametrize("share", range(SHARES))
async def test_an_agent_continues_its_work_while_the_server_is_killed(
    server: Server, workspace: Path, faults: int, share: int
) -> None:
    faults //= SHARES
    journal = define_scripted(workspace)
    first = await RetryingClient.begin(server)
    clients = [first, RetryingClient(server, first.id), RetryingClient(server, first.id)]
    chunks = CHUNKS // faults
    texts = []
    async with AsyncExitStack() as stack:
        for client in clients:
            await stack.enter_async_context(client.following())
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        answering = tasks.create_task(clients[1].allow_all())
        for number in range(faults):
            texts.append(_script(number, chunks))
            before = len(first.events)
            await first.prompt(texts[-1])
            await first.until_length(before + random.randrange(1, 12))
            await server.restart()
            await first.until_turns(number + 1)
        answering.cancel()
        await check_copies(clients)
    assert prompts_in(journal) == texts
    assert [event["data"]["text"] for event in first.events_of_type("user_prompt")] == texts
    assert numbers(first.agent_text()) == list(range(chunks * faults))
    assert [event["data"]["stopReason"] for event in first.events_of_type("turn_end")] == [
        "end_turn"
    ] * faults
    assert len({record["process"] for record in read_journal(journal)}) == 1
    assert len(first.events_of_type("worker_ready")) == 1 + faults  # the agent, and a terminal for each turn
    assert len(first.events_of_type("file_write")) == faults
    for number in range(faults):
        assert (workspace / f"file-{number}").read_text() == f"w{number}"
        assert (workspace / f"ran-{number}").read_text() == "once\n"


async def test_a_prompt_repeated_over_restarts_and_from_two_clients_reaches_the_agent_once(
    server: Server, workspace: Path
) -> None:
    journal = define_scripted(workspace)
    first = await RetryingClient.begin(server)
    second = RetryingClient(server, first.id)
    async with first.following():
        await first.until(lambda _: first.events_of_type("worker_ready"))
        answers = []
        for client in (first, second, first):
            answers += await asyncio.gather(*(client.prompt("[[sleep 2]]", "the-id") for _ in range(2)))
            await server.restart()
        assert all(answer == answers[0] for answer in answers)
        await server.call("POST", f"{first.path}/prompt", 409, json={"text": "other", "promptId": "the-id"})
        await first.until_turns(1)
    assert prompts_in(journal) == ["[[sleep 2]]"]
    assert len(first.events_of_type("user_prompt")) == 1


async def test_a_permission_is_answered_once_after_a_restart(server: Server, workspace: Path) -> None:
    journal = define_scripted(workspace)
    first = await RetryingClient.begin(server)
    async with first.following():
        await first.prompt("[[permission title=x]] [[chunk allowed]]")
        await first.until(lambda _: first.open_permissions())
        await server.restart()
        (permission,) = (await first.get("/permissions"))["permissions"]
        answers = await asyncio.gather(*(first.answer(permission["id"], "yes") for _ in range(2)))
        assert sorted(answers) == [204, 409]
        await first.until_turns(1)
    assert first.agent_text() == "allowed"
    replies = [record for record in read_journal(journal) if '"optionId"' in record.get("line", "")]
    assert len([record for record in replies if record["dir"] == "in"]) == 1


async def test_queued_messages_are_sent_once_and_in_order_while_the_server_is_killed(
    server: Server, workspace: Path, faults: int
) -> None:
    journal = define_scripted(workspace)
    first = await RetryingClient.begin(server)
    second = RetryingClient(server, first.id)
    async with first.following():
        await first.until(lambda _: first.events_of_type("worker_ready"))
        await first.prompt(
            opening := "[[permission title=wait]]"
        )  # the agent waits until the queue is filled and reordered
        await first.until(lambda _: first.open_permissions())
        texts = [f"{number} [[sleep 0.4]]" for number in range(8)]
        for number, client in zip(range(8), [first, second] * 4, strict=True):
            await client.prompt(texts[number], f"item-{number}")
        await server.restart()
        await retry_until_answered(lambda: server.call("DELETE", f"{first.path}/queue/item-6", 204))
        await retry_until_answered(
            lambda: server.call("POST", f"{second.path}/queue/item-7/move", json={"direction": "up"})
        )
        expected = [opening, *texts[:5], texts[7], texts[5]]
        (permission,) = first.open_permissions()
        await first.answer(permission, "yes")
        for _ in range(faults // 5):
            await asyncio.sleep(random.uniform(0, 0.5))
            await server.restart()
        await first.until_turns(len(expected))
        assert (await first.get("/queue"))["count"] == 0
        assert await first.stored_events() == first.events
    assert prompts_in(journal) == expected
    sent = [event["data"]["promptId"] for event in first.events_of_type("user_prompt")]
    assert sent[1:] == [f"item-{number}" for number in (0, 1, 2, 3, 4, 7, 5)]
