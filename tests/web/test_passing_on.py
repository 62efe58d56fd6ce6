"""Messages between agents: one is told what another answered, and the log says whose words they were."""

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
async def talk(house: Server) -> AsyncIterator[SessionClient]:
    """A session with a coder and a critic."""
    await define_scripted(house)
    talk = SessionClient(house, await house.new_session())
    for role in ("coder", "critic"):
        body = {"type": "agent", "agentId": "scripted", "role": role}
        worker = await house.call("POST", f"{talk.path}/workers", 201, json=body)
        await house.worker_in(talk.id, worker["id"], "active")
    yield talk
    await house.call("DELETE", talk.path)


async def worker_id(talk: SessionClient, role: str) -> str:
    workers = (await talk.server.call("GET", f"{talk.path}/workers"))["workers"]
    return next(str(worker["id"]) for worker in workers if worker["role"] == role)


async def pass_on(
    talk: SessionClient, source: dict[str, str], text: str = "", expect: int = 202, **more: Any
) -> dict[str, Any]:
    """Tells the critic what another said."""
    body: dict[str, Any] = {"role": "critic", "from": source, **more}
    answer: dict[str, Any] = await talk.prompt(text, expect, **body)
    return answer


async def heard(talk: SessionClient, prompt_id: str) -> dict[str, Any]:
    event = await talk.wait_for_event("user_prompt", promptId=prompt_id)
    data: dict[str, Any] = event["data"]
    return data


async def test_the_last_answer_reaches_another_agent_with_its_origin(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk first]]", role="coder")
    await talk.run_turn("[[chunk 'second ']] [[thought aside]] [[chunk half]]", role="coder")
    sent = await pass_on(talk, {"role": "coder"}, "look at this")
    told = await heard(talk, sent["promptId"])
    assert told["text"] == "look at this\n\n" + ANSWER.format("second half")
    coder = await worker_id(talk, "coder")
    assert told["from"] == {"workerId": coder, "role": "coder", "what": "answer"}
    messages = (await talk.server.call("GET", f"{talk.path}/messages"))["messages"]
    assert told["from"] in [message["content"].get("from") for message in messages]


async def test_what_still_grows_is_not_passed_on(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk done]]", role="coder")
    await talk.prompt("[[chunk unfinished]] [[wait_cancel]]", role="coder")
    await talk.wait_for_event("agent_message", text="unfinished")
    sent = await pass_on(talk, {"workerId": await worker_id(talk, "coder")})
    assert (await heard(talk, sent["promptId"]))["text"] == ANSWER.format("done")


async def test_an_agent_that_has_ended_has_its_say_still(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk 'famous last words']]", role="coder")
    coder = await worker_id(talk, "coder")
    await talk.server.call("DELETE", f"{talk.path}/workers/{coder}")
    sent = await pass_on(talk, {"workerId": coder})
    assert (await heard(talk, sent["promptId"]))["text"] == ANSWER.format("famous last words")


async def test_it_waits_in_the_queue_as_it_was_when_it_was_sent(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk early]]", role="coder")
    await talk.prompt("[[sleep 1]]", role="critic")
    sent = await pass_on(talk, {"role": "coder"})
    assert sent["queued"]
    added = await talk.wait_for_event("queue_added", id=sent["promptId"])
    await talk.run_turn("[[chunk late]]", role="coder")
    told = await heard(talk, sent["promptId"])
    assert (told["text"], told["from"]) == (ANSWER.format("early"), added["data"]["from"])


async def test_the_same_request_again_is_the_same_prompt_whatever_was_said_since(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk before]]", role="coder")
    first = await pass_on(talk, {"role": "coder"}, promptId="once")
    await talk.run_turn("[[chunk after]]", role="coder")
    assert await pass_on(talk, {"role": "coder"}, promptId="once") == first
    refused = await pass_on(talk, {"role": "critic"}, expect=409, promptId="once")
    assert refused["error"] == "conflict"


@pytest.mark.parametrize(
    ("source", "status", "words"),
    [
        ({"role": "nobody"}, 404, "nobody"),
        ({}, 400, "workerId or a role"),
        ({"role": "coder", "what": "dance"}, 400, "dance"),
        ({"role": "coder", "what": "diff"}, 409, "not in a git repository"),
        ({"role": "coder"}, 409, "has not answered anything yet"),
    ],
)
async def test_what_cannot_be_passed_on_is_refused_with_a_reason(
    talk: SessionClient, source: dict[str, str], status: int, words: str
) -> None:
    refused = await pass_on(talk, source, "x", status)
    assert words in refused["message"]


async def test_what_an_agent_has_changed_reaches_another_as_it_was_when_it_was_sent(
    house: Server, tmp_path: Path
) -> None:
    repo = Repo(house.workspace / tmp_path.name)
    await define_scripted(house)
    talk = await SessionClient.begin(house, locationPath=str(repo.path))
    source = {"role": "scripted", "what": "diff"}
    refused = await pass_on(talk, source, "review", 409, role="scripted")
    assert refused["message"] == "nothing has changed in the workspace of scripted"
    repo.write("readme.txt", "hello\nthere\n")
    sent = await pass_on(talk, source, "review", role="scripted", promptId="once")
    repo.write("later.txt", "too late\n")
    assert await pass_on(talk, source, "review", role="scripted", promptId="once") == sent
    told = await heard(talk, "once")
    opening, _, patch = told["text"].partition("```diff\n")
    assert opening.startswith("review\n\nWhat has changed in the workspace of scripted:\n\n1 file, +1 -0")
    assert "\n hello\n+there\n```" in patch
    worker = await talk.worker()
    assert told["from"] == {"workerId": worker["id"], **source}
    await house.call("DELETE", talk.path)


async def test_an_answer_far_back_in_a_long_log_is_found(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk needle]]", role="coder")
    await talk.run_turn("[[stream n=2500]]", role="critic")
    sent = await pass_on(talk, {"role": "coder"})
    assert (await heard(talk, sent["promptId"]))["text"] == ANSWER.format("needle")
