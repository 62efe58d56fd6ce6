"""The scripted agent does what its script says, well or badly, and its journal has every line."""

import asyncio
import json
import re
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bullpen.wire.jsonrpc import ErrorResponse, Request, Response
from support.acp_client import AcpClient, AcpError
from support.scripted_agent.journal import message_of, prompts_in, read_journal, streamed_in

PROGRAM = Path(__file__).with_name("scripted.py")
YES = {"outcome": {"outcome": "selected", "optionId": "yes"}}
NO = {"outcome": {"outcome": "selected", "optionId": "no"}}


class Stage:
    """Where a scripted agent plays: its script, its journal, its workspace."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.journal = directory / "journal.jsonl"

    @asynccontextmanager
    async def start(self, script: dict[str, Any] | str | None = None) -> AsyncIterator[AcpClient]:
        command = [sys.executable, str(PROGRAM), "--journal", str(self.journal)]
        if script is not None:
            text = script if isinstance(script, str) else json.dumps(script)
            path = self.directory / ("script.toml" if isinstance(script, str) else "script.json")
            path.write_text(text)
            command += ["--script", str(path)]
        async with AcpClient.start(command, str(self.directory)) as client:
            yield client

    @asynccontextmanager
    async def session(self, script: dict[str, Any] | str | None = None) -> AsyncIterator[AcpClient]:
        async with self.start(script) as client:
            await client.open(str(self.directory))
            yield client


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def test_a_prompt_without_a_script_is_answered(stage: Stage) -> None:
    async with stage.session() as client:
        assert await client.prompt("hello") == {"stopReason": "end_turn"}
        assert client.text() == "you said: hello"


async def test_two_thousand_numbered_chunks_over_turns_with_calls_and_permissions(stage: Stage) -> None:
    part = "[[stream n=125]] [[tool]] [[stream n=125]] [[permission title='step {n}']] [[stream n=250]]"
    async with stage.session() as client:
        client.handlers["session/request_permission"] = lambda _: YES
        for n in range(4):
            assert await client.prompt(part.format(n=n)) == {"stopReason": "end_turn"}
        numbers = [int(number) for number in re.findall(r"<(\d+)>", client.text())]
        assert numbers == list(range(2000))
        assert len(client.updates("tool_call")) == 8
    assert prompts_in(stage.journal) == [part.format(n=n) for n in range(4)]
    assert streamed_in(list(read_journal(stage.journal))) == list(range(2000))


async def test_the_journal_has_every_line_both_ways(stage: Stage) -> None:
    async with stage.session() as client:
        await client.prompt("[[chunk hello]]")
        client.close_input()
        assert await client.wait_for_exit() == 0
        records = list(read_journal(stage.journal))
    said = [message_of(record) for record in records if record["dir"] == "out"]
    assert [message["id"] for message in said if "result" in message] == [1, 2, 3]
    got = [message_of(record)["method"] for record in records if record["dir"] == "in"]
    assert got == ["initialize", "session/new", "session/prompt"]
    assert records[-1]["line"] == "end of input"


async def test_a_script_gives_each_prompt_its_steps(stage: Stage) -> None:
    script = """
    prompts = [["chunk first"], [{ do = "chunk", text = "second" }, "error code=400 'no model'"]]
    [agent.session]
    modes = { currentModeId = "a" }
    """
    async with stage.start(script) as client:
        assert (await client.open(str(stage.directory)))["modes"] == {"currentModeId": "a"}
        await client.prompt("x")
        with pytest.raises(AcpError, match="no model"):
            await client.prompt("y")
        assert client.text() == "firstsecond"


async def test_the_next_process_goes_on_counting_and_repeats_what_was_said(stage: Stage) -> None:
    async with stage.session() as client:
        await client.prompt("[[stream n=3]]")
        session_id = client.session_id
    async with stage.start() as client:
        client.session_id = session_id
        await client.open(str(stage.directory), method="session/load")
        assert client.text("user_message_chunk") == "[[stream n=3]]"
        assert client.text() == "<0><1><2>"
        await client.prompt("[[stream n=2]]")
        assert client.text() == "<0><1><2><3><4>"


@pytest.mark.parametrize(("replay", "expected"), [("load", ""), ("both", "<0>")])
async def test_resuming_repeats_only_with_bad_manners(stage: Stage, replay: str, expected: str) -> None:
    async with stage.session() as client:
        await client.prompt("[[stream n=1]]")
        session_id = client.session_id
    async with stage.start({"agent": {"replay": replay}}) as client:
        client.session_id = session_id
        await client.open(str(stage.directory), method="session/resume")
        assert client.text() == expected


async def test_it_works_with_files_terminals_and_forms_of_the_client(stage: Stage) -> None:
    written: list[tuple[str, str]] = []
    async with stage.session() as client:
        client.handlers |= {
            "fs/write_text_file": lambda p: written.append((p["path"], p["content"])),
            "fs/read_text_file": lambda _: {"content": "old"},
            "terminal/create": lambda p: {"terminalId": p["args"][1]},
            "terminal/wait_for_exit": lambda _: {"exitCode": 0},
            "terminal/output": lambda _: {"output": "hi", "truncated": False},
            "terminal/release": lambda _: {},
            "elicitation/create": lambda _: {"action": "decline"},
        }
        await client.prompt("[[read a]] [[write path=b content='x y']] [[terminal echo hi]] [[question]]")
        assert client.text() == "read 'old'exit 0 said 'hi'answered {\"action\": \"decline\"}"
    assert written == [(str(stage.directory / "b"), "x y")]


async def test_a_permission_refused_fails_the_call(stage: Stage) -> None:
    async with stage.session() as client:
        client.handlers["session/request_permission"] = lambda _: NO
        await client.prompt("[[permission]]")
        assert client.updates("tool_call_update")[-1]["status"] == "failed"


async def test_a_permission_may_name_a_call_never_announced(stage: Stage) -> None:
    async with stage.session() as client:
        client.handlers["session/request_permission"] = lambda _: YES
        await client.prompt("[[permission announce=false]]")
        assert not client.updates("tool_call")
        assert client.updates("tool_call_update")


@pytest.mark.parametrize(
    ("on_cancel", "outcome"),
    [("cancelled", {"stopReason": "cancelled"}), ("error", None), ("ignore", {"stopReason": "end_turn"})],
)
async def test_cancel_is_taken_well_or_badly(stage: Stage, on_cancel: str, outcome: Any) -> None:
    async with stage.session({"agent": {"on_cancel": on_cancel}}) as client:
        n = client.send_prompt("[[stream n=1]] [[wait_cancel]] [[stream n=1]]")
        await client.until(lambda: client.text() or None)
        client.cancel()
        if outcome is None:
            with pytest.raises(AcpError, match="interrupted"):
                await client.response_to(n)
        else:
            assert await client.response_to(n) == outcome
        assert client.text() == ("<0><1>" if on_cancel == "ignore" else "<0>")


async def test_cancel_ends_a_question_that_is_open(stage: Stage) -> None:
    async with stage.session() as client:
        n = client.send_prompt("[[permission]]")
        await client.until(lambda: [line for line in client.lines if isinstance(line, Request)] or None)
        client.cancel()
        assert await client.response_to(n) == {"stopReason": "cancelled"}


async def test_prompts_that_overlap_are_queued(stage: Stage) -> None:
    async with stage.session() as client:
        numbers = [client.send_prompt(f"[[chunk {n}]] [[sleep 0.01]] [[chunk {n}]]") for n in range(3)]
        assert [await client.response_to(n) for n in numbers] == [{"stopReason": "end_turn"}] * 3
        assert client.text() == "001122"


@pytest.mark.parametrize(
    ("overlap", "first", "second"),
    [
        ("refuse", {"stopReason": "cancelled"}, "busy"),
        ("cancel_first", {"stopReason": "cancelled"}, {"stopReason": "end_turn"}),
        ("fail_first", "pushed aside", {"stopReason": "end_turn"}),
    ],
)
async def test_prompts_that_overlap_push_each_other(
    stage: Stage, overlap: str, first: Any, second: Any
) -> None:
    async def outcome(n: int) -> Any:
        try:
            return await client.response_to(n)
        except AcpError as refused:
            return str(refused)

    async with stage.session({"agent": {"overlap": overlap}}) as client:
        one = client.send_prompt("[[stream n=1]] [[wait_cancel]]")
        await client.until(lambda: client.text() or None)
        two = client.send_prompt("[[chunk two]]")
        assert await outcome(two) == second
        client.cancel()
        assert await outcome(one) == first


async def test_a_prompt_that_overlaps_may_never_be_answered(stage: Stage) -> None:
    async with stage.session({"agent": {"overlap": "never"}}) as client:
        one = client.send_prompt("[[stream n=1]] [[wait_cancel]]")
        await client.until(lambda: client.text() or None)
        two = client.send_prompt("[[chunk two]]")
        client.cancel()
        assert await client.response_to(one) == {"stopReason": "cancelled"}
        client.close_input()
        await client.wait_for_exit()
        with pytest.raises(AcpError, match="ended"):
            await client.response_to(two)


async def test_ids_may_be_texts_and_answers_may_have_none(stage: Stage) -> None:
    async with stage.start({"agent": {"ids": "uuid", "answer_ids": "none"}}) as client:
        client.send("initialize", {})
        client.send("session/new", {"cwd": "/"})
        client.handlers["session/request_permission"] = lambda _: YES
        client.send_prompt("[[permission]]")
        await client.until(
            lambda: len([line for line in client.lines if isinstance(line, Response)]) == 3 or None
        )
        assert {line.id for line in client.lines if isinstance(line, Response)} == {None}
        (asked,) = [line for line in client.lines if isinstance(line, Request)]
        assert str(uuid.UUID(asked.id)) == asked.id


async def test_updates_come_early_late_and_of_strangers(stage: Stage) -> None:
    script = {
        "agent": {"early": ["chunk early"]},
        "prompts": [
            [
                {"do": "answer", "result": {"stopReason": "end_turn"}},
                "chunk late",
                {"do": "update", "update": {"sessionUpdate": "who_knows"}, "session": "child"},
            ]
        ],
    }
    async with stage.session(script) as client:
        assert client.text() == "early"
        await client.prompt("x")
        await client.until(lambda: client.updates("who_knows") or None)
        kinds = [type(line).__name__ for line in client.lines[-3:]]
        assert kinds == ["Response", "Notification", "Notification"]


async def test_it_speaks_nonsense_and_goes_on(stage: Stage) -> None:
    async with stage.session({"start": ["garbage hello there", "stderr times=3"]}) as client:
        await client.prompt(
            "[[garbage]] [[bytes ff0a]] [[slices 'äöü€ in pieces' delay=0]] [[huge size=2000000]]"
        )
        assert client.invalid_lines()[0] == "hello there"
        assert len(client.invalid_lines()) == 4
        assert client.text() == "äöü€ in pieces"
    sizes = [record["size"] for record in read_journal(stage.journal) if "size" in record]
    assert sizes == [2_000_001]


async def test_it_answers_twice(stage: Stage) -> None:
    script = {"prompts": [[{"do": "answer", "result": {"stopReason": "end_turn"}, "twice": True}]]}
    async with stage.session(script) as client:
        n = client.send_prompt("x")
        await client.until(
            lambda: (
                len([line for line in client.lines if isinstance(line, Response) and line.id == n]) == 2
                or None
            )
        )


async def test_it_never_answers_and_refuses_the_handshake(stage: Stage) -> None:
    script = {"on": {"session/new": ["silent"], "session/load": ["error code=-32000 'log in first'"]}}
    async with stage.start(script) as client:
        await client.request("initialize", {})
        silent = client.send("session/new", {"cwd": "/"})
        with pytest.raises(AcpError) as refused:
            await client.request("session/load", {"sessionId": "x", "cwd": "/"})
        assert refused.value.code == -32000
        answers = [line for line in client.lines if isinstance(line, Response | ErrorResponse)]
        assert silent not in [line.id for line in answers]


@pytest.mark.parametrize(
    ("step", "code"),
    [("crash", -signal.SIGKILL), ("crash signal=SIGSEGV", -signal.SIGSEGV), ("exit code=7", 7)],
)
async def test_it_falls_over(stage: Stage, step: str, code: int) -> None:
    async with stage.session() as client:
        client.send_prompt(f"[[stream n=2]] [[{step}]]")
        assert await client.wait_for_exit() == code
    assert streamed_in(list(read_journal(stage.journal))) == [0, 1]


async def test_it_ignores_the_end_of_its_input_and_being_asked_to_end(stage: Stage) -> None:
    async with stage.session({"agent": {"ignore_eof": True, "ignore_term": True}}) as client:
        client.process.terminate()
        assert await client.prompt("still there?") == {"stopReason": "end_turn"}
        client.close_input()
        async with asyncio.timeout(60):
            while not any(record.get("line") == "end of input" for record in read_journal(stage.journal)):
                await asyncio.sleep(0.01)
        assert client.process.returncode is None


async def test_it_closes_its_output_and_lives(stage: Stage) -> None:
    async with stage.session() as client:
        n = client.send_prompt("[[close_stdout]] [[wait_cancel]]")
        with pytest.raises(AcpError, match="ended"):
            await client.response_to(n)
        assert client.process.returncode is None
