"""Forwarded content: an agent gets the answer or changes of another, and the log names the source."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANSWER = "The last answer of coder:\n\n{}"


@pytest_asyncio.fixture(loop_scope="session")
async def conversation(shared_server: Server) -> AsyncIterator[SessionClient]:
    """A session with two agents, the coder and the critic."""
    await define_scripted(shared_server)
    conversation = SessionClient(shared_server, await shared_server.new_session())
    for role in ("coder", "critic"):
        body = {"type": "agent", "agentId": "scripted", "role": role}
        worker = await shared_server.call("POST", f"{conversation.path}/workers", 201, json=body)
        await shared_server.worker_in(conversation.id, worker["id"], "active")
    yield conversation
    await shared_server.call("DELETE", conversation.path)


async def worker_id(conversation: SessionClient, role: str) -> str:
    workers = (await conversation.server.call("GET", f"{conversation.path}/workers"))["workers"]
    return next(str(worker["id"]) for worker in workers if worker["role"] == role)


async def forward(
    conversation: SessionClient, source: dict[str, str], text: str = "", expect: int = 202, **more: Any
) -> dict[str, Any]:
    """Forward the last answer or the changes of an agent to the critic."""
    body: dict[str, Any] = {"role": "critic", "from": source, **more}
    answer: dict[str, Any] = await conversation.prompt(text, expect, **body)
    return answer


async def received_prompt(conversation: SessionClient, prompt_id: str) -> dict[str, Any]:
    event = await conversation.wait_for_event("user_prompt", promptId=prompt_id)
    data: dict[str, Any] = event["data"]
    return data


async def test_the_last_answer_is_sent_to_another_agent_with_its_source(conversation: SessionClient) -> None:
    await conversation.run_turn("[[chunk first]]", role="coder")
    await conversation.run_turn("[[chunk 'second ']] [[thought aside]] [[chunk half]]", role="coder")
    sent = await forward(conversation, {"role": "coder"}, "look at this")
    received = await received_prompt(conversation, sent["promptId"])
    assert received["text"] == "look at this\n\n" + ANSWER.format("second half")
    coder = await worker_id(conversation, "coder")
    assert received["from"] == {"workerId": coder, "role": "coder", "what": "answer"}
    messages = (await conversation.server.call("GET", f"{conversation.path}/messages"))["messages"]
    assert received["from"] in [message["content"].get("from") for message in messages]


async def test_an_unfinished_answer_is_not_forwarded(conversation: SessionClient) -> None:
    await conversation.run_turn("[[chunk done]]", role="coder")
    await conversation.prompt("[[chunk unfinished]] [[wait_cancel]]", role="coder")
    await conversation.wait_for_event("agent_message", text="unfinished")
    sent = await forward(conversation, {"workerId": await worker_id(conversation, "coder")})
    assert (await received_prompt(conversation, sent["promptId"]))["text"] == ANSWER.format("done")


async def test_the_answer_of_a_terminated_agent_can_be_forwarded(conversation: SessionClient) -> None:
    await conversation.run_turn("[[chunk 'famous last words']]", role="coder")
    coder = await worker_id(conversation, "coder")
    await conversation.server.call("DELETE", f"{conversation.path}/workers/{coder}")
    sent = await forward(conversation, {"workerId": coder})
    assert (await received_prompt(conversation, sent["promptId"]))["text"] == ANSWER.format(
        "famous last words"
    )


async def test_queued_content_stays_as_it_was_when_it_was_forwarded(conversation: SessionClient) -> None:
    await conversation.run_turn("[[chunk early]]", role="coder")
    await conversation.prompt("[[sleep 1]]", role="critic")
    sent = await forward(conversation, {"role": "coder"})
    assert sent["queued"]
    added = await conversation.wait_for_event("queue_added", id=sent["promptId"])
    await conversation.run_turn("[[chunk late]]", role="coder")
    received = await received_prompt(conversation, sent["promptId"])
    assert (received["text"], received["from"]) == (ANSWER.format("early"), added["data"]["from"])


async def test_a_repeated_request_is_the_same_prompt_after_a_newer_answer(
    conversation: SessionClient,
) -> None:
    await conversation.run_turn("[[chunk before]]", role="coder")
    first = await forward(conversation, {"role": "coder"}, promptId="once")
    await conversation.run_turn("[[chunk after]]", role="coder")
    assert await forward(conversation, {"role": "coder"}, promptId="once") == first
    refused = await forward(conversation, {"role": "critic"}, expect=409, promptId="once")
    assert refused["error"] == "conflict"


@pytest.mark.parametrize(
    ("source", "status", "reason"),
    [
        ({"role": "unknown"}, 404, "unknown"),
        ({}, 400, "workerId or a role"),
        ({"role": "coder", "what": "dance"}, 400, "dance"),
        ({"role": "coder", "what": "diff"}, 409, "not in a git repository"),
        ({"role": "coder"}, 409, "has not answered anything yet"),
    ],
)
async def test_content_that_cannot_be_forwarded_is_refused_with_a_reason(
    conversation: SessionClient, source: dict[str, str], status: int, reason: str
) -> None:
    refused = await forward(conversation, source, "x", status)
    assert reason in refused["message"]


async def test_the_changes_of_an_agent_are_forwarded_as_they_were_when_they_were_sent(
    shared_server: Server, tmp_path: Path
) -> None:
    repo = Repo(shared_server.workspace / tmp_path.name)
    await define_scripted(shared_server)
    conversation = await SessionClient.begin(shared_server, locationPath=str(repo.path))
    source = {"role": "scripted", "what": "diff"}
    refused = await forward(conversation, source, "review", 409, role="scripted")
    assert refused["message"] == "nothing has changed in the workspace of scripted"
    repo.write("readme.txt", "hello\nthere\n")
    sent = await forward(conversation, source, "review", role="scripted", promptId="once")
    repo.write("later.txt", "too late\n")
    assert await forward(conversation, source, "review", role="scripted", promptId="once") == sent
    received = await received_prompt(conversation, "once")
    opening, _, patch = received["text"].partition("```diff\n")
    assert opening.startswith("review\n\nWhat has changed in the workspace of scripted:\n\n1 file, +1 -0")
    assert "\n hello\n+there\n```" in patch
    worker = await conversation.worker()
    assert received["from"] == {"workerId": worker["id"], **source}
    await shared_server.call("DELETE", conversation.path)


async def test_an_answer_early_in_a_long_log_is_found(conversation: SessionClient) -> None:
    await conversation.run_turn("[[chunk needle]]", role="coder")
    await conversation.run_turn("[[stream n=2500]]", role="critic")
    sent = await forward(conversation, {"role": "coder"})
    assert (await received_prompt(conversation, sent["promptId"]))["text"] == ANSWER.format("needle")
