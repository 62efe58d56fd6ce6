"""The scripted agent does what its script says, also against the protocol, and its journal has every line."""

import asyncio
import json
import re
import signal
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bullpen.wire.jsonrpc import ErrorResponse, Request, Response
from support.acp_client import AcpClient, AcpError
from support.scripted_agent.command import scripted_command
from support.scripted_agent.journal import message_of, prompts_in, read_journal, streamed_in

YES = {"outcome": {"outcome": "selected", "optionId": "yes"}}
NO = {"outcome": {"outcome": "selected", "optionId": "no"}}


class ScriptedSetup:
    """Starts the scripted agent with a script, a journal and a working directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.journal = directory / "journal.jsonl"

    @asynccontextmanager
    async def start(self, script: dict[str, Any] | str | None = None) -> AsyncIterator[AcpClient]:
        path = None
        if script is not None:
            text = script if isinstance(script, str) else json.dumps(script)
            path = self.directory / ("script.toml" if isinstance(script, str) else "script.json")
            path.write_text(text)
        command = scripted_command(self.journal, path)
        async with AcpClient.start(command, str(self.directory)) as client:
            yield client

    @asynccontextmanager
    async def session(self, script: dict[str, Any] | str | None = None) -> AsyncIterator[AcpClient]:
        async with self.start(script) as client:
            await client.open(str(self.directory))
            yield client


@pytest.fixture
def agent_setup(tmp_path: Path) -> ScriptedSetup:
    return ScriptedSetup(tmp_path)


async def test_a_prompt_without_a_script_is_answered(agent_setup: ScriptedSetup) -> None:
    async with agent_setup.session() as client:
        assert await client.prompt("hello") == {"stopReason": "end_turn"}
        assert client.text() == "you said: hello"


async def test_two_thousand_numbered_chunks_arrive_in_order_over_several_turns(
    agent_setup: ScriptedSetup,
) -> None:
    part = "[[stream n=125]] [[tool]] [[stream n=125]] [[permission title='step {n}']] [[stream n=250]]"
    async with agent_setup.session() as client:
        client.handlers["session/request_permission"] = lambda _: YES
        for n in range(4):
            assert await client.prompt(part.format(n=n)) == {"stopReason": "end_turn"}
        numbers = [int(number) for number in re.findall(r"<(\d+)>", client.text())]
        assert numbers == list(range(2000))
        assert len(client.updates("tool_call")) == 8
    assert prompts_in(agent_setup.journal) == [part.format(n=n) for n in range(4)]
    assert streamed_in(list(read_journal(agent_setup.journal))) == list(range(2000))


async def test_the_journal_has_every_line_in_both_directions(agent_setup: ScriptedSetup) -> None:
    async with agent_setup.session() as client:
        await client.prompt("[[chunk hello]]")
        client.close_input()
        assert await client.wait_for_exit() == 0
        records = list(read_journal(agent_setup.journal))
    sent = [message_of(record) for record in records if record["dir"] == "out"]
    assert [message["id"] for message in sent if "result" in message] == [1, 2, 3]
    received = [message_of(record)["method"] for record in records if record["dir"] == "in"]
    assert received == ["initialize", "session/new", "session/prompt"]
    assert records[-1]["line"] == "end of input"


async def test_a_script_gives_each_prompt_its_steps(agent_setup: ScriptedSetup) -> None:
    script = """
    prompts = [["chunk first"], [{ do = "chunk", text = "second" }, "error code=400 'no model'"]]
    [agent.session]
    modes = { currentModeId = "a" }
    """
    async with agent_setup.start(script) as client:
        assert (await client.open(str(agent_setup.directory)))["modes"] == {"currentModeId": "a"}
        await client.prompt("x")
        with pytest.raises(AcpError, match="no model"):
            await client.prompt("y")
        assert client.text() == "firstsecond"


async def test_the_next_process_repeats_the_conversation_and_continues_the_numbers(
    agent_setup: ScriptedSetup,
) -> None:
    async with agent_setup.session() as client:
        await client.prompt("[[stream n=3]]")
        session_id = client.session_id
    async with agent_setup.start() as client:
        client.session_id = session_id
        await client.open(str(agent_setup.directory), method="session/load")
        assert client.text("user_message_chunk") == "[[stream n=3]]"
        assert client.text() == "<0><1><2>"
        await client.prompt("[[stream n=2]]")
        assert client.text() == "<0><1><2><3><4>"


@pytest.mark.parametrize(("replay", "expected"), [("load", ""), ("both", "<0>")])
async def test_resuming_repeats_the_conversation_only_if_the_script_says_so(
    agent_setup: ScriptedSetup, replay: str, expected: str
) -> None:
    async with agent_setup.session() as client:
        await client.prompt("[[stream n=1]]")
        session_id = client.session_id
    async with agent_setup.start({"agent": {"replay": replay}}) as client:
        client.session_id = session_id
        await client.open(str(agent_setup.directory), method="session/resume")
        assert client.text() == expected


async def test_steps_use_files_terminals_and_forms_of_the_client(agent_setup: ScriptedSetup) -> None:
    written: list[tuple[str, str]] = []
    async with agent_setup.session() as client:
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
    assert written == [(str(agent_setup.directory / "b"), "x y")]


async def test_a_refused_permission_fails_the_tool_call(agent_setup: ScriptedSetup) -> None:
    async with agent_setup.session() as client:
        client.handlers["session/request_permission"] = lambda _: NO
        await client.prompt("[[permission]]")
        assert client.updates("tool_call_update")[-1]["status"] == "failed"


async def test_a_permission_may_name_a_tool_call_that_was_never_announced(agent_setup: ScriptedSetup) -> None:
    async with agent_setup.session() as client:
        client.handlers["session/request_permission"] = lambda _: YES
        await client.prompt("[[permission announce=false]]")
        assert not client.updates("tool_call")
        assert client.updates("tool_call_update")


@pytest.mark.parametrize(
    ("on_cancel", "outcome"),
    [("cancelled", {"stopReason": "cancelled"}), ("error", None), ("ignore", {"stopReason": "end_turn"})],
)
async def test_a_cancel_is_obeyed_answered_with_an_error_or_ignored(
    agent_setup: ScriptedSetup, on_cancel: str, outcome: Any
) -> None:
    async with agent_setup.session({"agent": {"on_cancel": on_cancel}}) as client:
        n = client.send_prompt("[[stream n=1]] [[wait_cancel]] [[stream n=1]]")
        await client.until(lambda: client.text() or None)
        client.cancel()
        if outcome is None:
            with pytest.raises(AcpError, match="interrupted"):
                await client.response_to(n)
        else:
            assert await client.response_to(n) == outcome
        assert client.text() == ("<0><1>" if on_cancel == "ignore" else "<0>")


async def test_a_cancel_that_arrives_together_with_its_prompt_is_obeyed(agent_setup: ScriptedSetup) -> None:
    async with agent_setup.session() as client:
        n = client.send_prompt("[[wait_cancel]]")
        client.cancel()
        assert await client.response_to(n) == {"stopReason": "cancelled"}


async def test_a_cancel_ends_an_open_permission(agent_setup: ScriptedSetup) -> None:
    async with agent_setup.session() as client:
        n = client.send_prompt("[[permission]]")
        await client.until(lambda: [line for line in client.lines if isinstance(line, Request)] or None)
        client.cancel()
        assert await client.response_to(n) == {"stopReason": "cancelled"}


async def test_overlapping_prompts_are_queued(agent_setup: ScriptedSetup) -> None:
    async with agent_setup.session() as client:
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
async def test_overlapping_prompts_refuse_cancel_or_fail_each_other(
    agent_setup: ScriptedSetup, overlap: str, first: Any, second: Any
) -> None:
    async def outcome(n: int) -> Any:
        try:
            return await client.response_to(n)
        except AcpError as refused:
            return str(refused)

    async with agent_setup.session({"agent": {"overlap": overlap}}) as client:
        one = client.send_prompt("[[stream n=1]] [[wait_cancel]]")
        await client.until(lambda: client.text() or None)
        two = client.send_prompt("[[chunk two]]")
        assert await outcome(two) == second
        client.cancel()
        assert await outcome(one) == first


async def test_an_overlapping_prompt_may_never_be_answered(agent_setup: ScriptedSetup) -> None:
    async with agent_setup.session({"agent": {"overlap": "never"}}) as client:
        one = client.send_prompt("[[stream n=1]] [[wait_cancel]]")
        await client.until(lambda: client.text() or None)
        two = client.send_prompt("[[chunk two]]")
        client.cancel()
        assert await client.response_to(one) == {"stopReason": "cancelled"}
        client.close_input()
        await client.wait_for_exit()
        with pytest.raises(AcpError, match="ended"):
            await client.response_to(two)


async def test_ids_may_be_strings_and_responses_may_have_none(agent_setup: ScriptedSetup) -> None:
    async with agent_setup.start({"agent": {"ids": "uuid", "answer_ids": "none"}}) as client:
        client.send("initialize", {})
        client.send("session/new", {"cwd": "/"})
        client.handlers["session/request_permission"] = lambda _: YES
        client.send_prompt("[[permission]]")
        await client.until(
            lambda: len([line for line in client.lines if isinstance(line, Response)]) == 3 or None
        )
        assert {line.id for line in client.lines if isinstance(line, Response)} == {None}
        (request,) = [line for line in client.lines if isinstance(line, Request)]
        assert str(uuid.UUID(request.id)) == request.id


async def test_updates_may_come_early_late_and_for_unknown_sessions(agent_setup: ScriptedSetup) -> None:
    script = {
        "agent": {"early": ["chunk early"]},
        "prompts": [
            [
                {"do": "answer", "result": {"stopReason": "end_turn"}},
                "chunk late",
                {"do": "update", "update": {"sessionUpdate": "unknown_kind"}, "session": "child"},
            ]
        ],
    }
    async with agent_setup.session(script) as client:
        assert client.text() == "early"
        await client.prompt("x")
        await client.until(lambda: client.updates("unknown_kind") or None)
        kinds = [type(line).__name__ for line in client.lines[-3:]]
        assert kinds == ["Response", "Notification", "Notification"]


async def test_the_agent_sends_invalid_lines_and_continues(agent_setup: ScriptedSetup) -> None:
    async with agent_setup.session({"start": ["garbage hello there", "stderr times=3"]}) as client:
        await client.prompt(
            "[[garbage]] [[bytes ff0a]] [[slices 'äöü€ in pieces' delay=0]] [[huge size=2000000]]"
        )
        assert client.invalid_lines()[0] == "hello there"
        assert len(client.invalid_lines()) == 4
        assert client.text() == "äöü€ in pieces"
    sizes = [record["size"] for record in read_journal(agent_setup.journal) if "size" in record]
    assert sizes == [2_000_001]


async def test_a_prompt_may_be_answered_twice(agent_setup: ScriptedSetup) -> None:
    script = {"prompts": [[{"do": "answer", "result": {"stopReason": "end_turn"}, "twice": True}]]}
    async with agent_setup.session(script) as client:
        n = client.send_prompt("x")
        await client.until(
            lambda: (
                len([line for line in client.lines if isinstance(line, Response) and line.id == n]) == 2
                or None
            )
        )


async def test_requests_of_the_handshake_may_be_ignored_or_refused(agent_setup: ScriptedSetup) -> None:
    script = {"on": {"session/new": ["silent"], "session/load": ["error code=-32000 'log in first'"]}}
    async with agent_setup.start(script) as client:
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
async def test_the_agent_may_crash_or_exit(agent_setup: ScriptedSetup, step: str, code: int) -> None:
    async with agent_setup.session() as client:
        client.send_prompt(f"[[stream n=2]] [[{step}]]")
        assert await client.wait_for_exit() == code
    assert streamed_in(list(read_journal(agent_setup.journal))) == [0, 1]


async def test_the_agent_may_ignore_sigterm_and_the_end_of_its_input(agent_setup: ScriptedSetup) -> None:
    async with agent_setup.session({"agent": {"ignore_eof": True, "ignore_term": True}}) as client:
        client.process.terminate()
        assert await client.prompt("still there?") == {"stopReason": "end_turn"}
        client.close_input()
        async with asyncio.timeout(60):
            while not any(
                record.get("line") == "end of input" for record in read_journal(agent_setup.journal)
            ):
                await asyncio.sleep(0.01)
        assert client.process.returncode is None


async def test_the_agent_may_close_its_output_and_continue_to_run(agent_setup: ScriptedSetup) -> None:
    async with agent_setup.session() as client:
        n = client.send_prompt("[[close_stdout]] [[wait_cancel]]")
        with pytest.raises(AcpError, match="ended"):
            await client.response_to(n)
        assert client.process.returncode is None
