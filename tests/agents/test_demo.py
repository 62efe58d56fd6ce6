"""The demo agent is a real ACP agent: users can try every feature without a model."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.demo.requested_actions import HELP, VERBS, RequestedAction, parse_actions
from bullpen.domain.conversation import UnknownUpdate
from bullpen.wire.acp import fact_of_update
from bullpen.wire.jsonrpc import Request
from support.acp_client import AcpClient, AcpError, Handler

COMMAND = [sys.executable, "-m", "bullpen.agents.demo"]
ALLOWED = {"outcome": {"outcome": "selected", "optionId": "once"}}
ALWAYS = {"outcome": {"outcome": "selected", "optionId": "always"}}
REJECTED = {"outcome": {"outcome": "selected", "optionId": "no"}}


class DemoSetup:
    """Starts the demo agent in a workspace, with a state directory that outlives the process."""

    def __init__(self, directory: Path) -> None:
        self.workspace = directory / "workspace"
        self.workspace.mkdir()
        self._env = {"DEMO_AGENT_STATE": str(directory / "state")}

    def start(self) -> AbstractAsyncContextManager[AcpClient]:
        return AcpClient.start(COMMAND, str(self.workspace), self._env)

    @asynccontextmanager
    async def session(self, offers: dict[str, Any] | None = None) -> AsyncIterator[AcpClient]:
        async with self.start() as client:
            await client.open(str(self.workspace), {} if offers is None else offers)
            yield client


@pytest.fixture
def demo(tmp_path: Path) -> DemoSetup:
    return DemoSetup(tmp_path)


async def test_an_answer_is_streamed_and_its_usage_reported(demo: DemoSetup) -> None:
    async with demo.session() as client:
        answer = await client.prompt("good morning")
        assert answer["stopReason"] == "end_turn"
        usage = answer["usage"]
        assert usage["inputTokens"] + usage["outputTokens"] == usage["totalTokens"] > 0
        assert "You said: good morning" in client.text()
        assert len(client.updates("agent_message_chunk")) > 5
        assert len({update["messageId"] for update in client.updates("agent_message_chunk")}) == 1
        assert client.updates("usage_update")


async def test_help_names_every_action(demo: DemoSetup) -> None:
    async with demo.session() as client:
        await client.prompt("help")
        assert client.text() == HELP
    assert all(f"**{verb}**" in HELP for verb in set(VERBS.values()))


async def test_a_plan_is_shown_and_completed(demo: DemoSetup) -> None:
    async with demo.session() as client:
        await client.prompt("think, then plan")
        assert client.text("agent_thought_chunk")
        plans = [[entry["status"] for entry in update["entries"]] for update in client.updates("plan")]
        assert plans[0] == ["in_progress", "pending", "pending"]
        assert plans[-1] == ["completed"] * 3


async def test_a_file_is_edited_directly_if_the_client_does_not_offer_to(demo: DemoSetup) -> None:
    async with demo.session() as client:
        client.handlers["session/request_permission"] = lambda _: ALLOWED
        await client.prompt("edit notes.md")
        assert (demo.workspace / "notes.md").read_text() == "The demo agent was here (1).\n"
        assert [update["status"] for update in client.updates("tool_call")] == ["pending"]
        assert client.updates("tool_call_update")[-1]["status"] == "completed"


async def test_a_file_is_edited_through_the_client_if_the_client_offers_to(demo: DemoSetup) -> None:
    written: dict[str, str] = {}

    def read(params: dict[str, Any]) -> Any:
        raise AcpError(-32002, f"no {params['path']}")

    async with demo.session({"fs": {"readTextFile": True, "writeTextFile": True}}) as client:
        client.handlers["session/request_permission"] = lambda _: ALLOWED
        client.handlers["fs/read_text_file"] = read
        client.handlers["fs/write_text_file"] = lambda p: written.update({p["path"]: p["content"]})
        await client.prompt("write sub/a.txt")
    assert written == {str(demo.workspace / "sub" / "a.txt"): "The demo agent was here (1).\n"}
    assert not (demo.workspace / "sub").exists()


async def test_every_update_is_a_known_one(demo: DemoSetup) -> None:
    async with demo.session() as client:
        client.handlers["session/request_permission"] = lambda _: ALLOWED
        await client.prompt("think, plan, edit a.txt, image, ask and run date")
        kinds = {update["sessionUpdate"] for update in client.updates()}
        assert {"plan", "tool_call", "tool_call_update", "usage_update", "session_info_update"} <= kinds
        assert not [u for u in client.updates() if isinstance(fact_of_update(u), UnknownUpdate)]


async def test_no_file_outside_of_the_workspace_is_edited(demo: DemoSetup) -> None:
    async with demo.session() as client:
        await client.prompt("edit ../outside.txt")
        assert "outside of my workspace" in client.text()
        assert not client.updates("tool_call")


async def test_a_command_is_run_directly_if_the_client_does_not_offer_a_terminal(demo: DemoSetup) -> None:
    async with demo.session() as client:
        client.handlers["session/request_permission"] = lambda _: ALLOWED
        await client.prompt("run echo hello; exit 3")
        ended = client.updates("tool_call_update")[-1]
        assert ended["status"] == "failed"
        assert "hello" in ended["content"][0]["content"]["text"]
        assert "exit code 3" in client.text()


async def test_a_command_is_run_in_a_terminal_of_the_client_if_it_is_offered(demo: DemoSetup) -> None:
    called: list[str] = []
    answers = {
        "terminal/create": {"terminalId": "t1"},
        "terminal/wait_for_exit": {"exitCode": 0, "signal": None},
        "terminal/output": {"output": "from the terminal", "truncated": False},
        "terminal/release": {},
    }

    def answering(method: str) -> Handler:
        def answer(_: dict[str, Any]) -> Any:
            called.append(method)
            return answers[method]

        return answer

    async with demo.session({"terminal": True}) as client:
        client.handlers["session/request_permission"] = lambda _: ALLOWED
        client.handlers |= {method: answering(method) for method in answers}
        await client.prompt("run `ls`")
        assert called == list(answers)
        shown = [update.get("content") for update in client.updates("tool_call_update")]
        assert [{"type": "terminal", "terminalId": "t1"}] in shown
        assert "from the terminal" in str(shown[-1])


async def test_a_refused_permission_prevents_the_edit_and_always_allow_is_remembered(demo: DemoSetup) -> None:
    answers = iter([REJECTED, ALWAYS])
    async with demo.session() as client:
        client.handlers["session/request_permission"] = lambda _: next(answers)
        await client.prompt("edit a.txt")
        assert not (demo.workspace / "a.txt").exists()
        await client.prompt("edit a.txt")
        await client.prompt("edit a.txt")
        assert (demo.workspace / "a.txt").read_text().count("demo agent") == 2


@pytest.mark.parametrize(("mode", "edited"), [("auto", True), ("plan", False)])
async def test_a_mode_allows_or_prevents_edits(demo: DemoSetup, mode: str, edited: bool) -> None:
    async with demo.session() as client:
        answer = await client.request(
            "session/set_config_option", {"sessionId": client.session_id, "configId": "mode", "value": mode}
        )
        assert answer["configOptions"][0]["currentValue"] == mode
        assert client.updates("current_mode_update")[-1]["currentModeId"] == mode
        await client.prompt("edit a.txt")
        assert (demo.workspace / "a.txt").exists() == edited


async def test_modes_can_be_set_with_the_older_method_and_unknown_ones_are_refused(demo: DemoSetup) -> None:
    async with demo.session() as client:
        answer = await client.request("session/set_mode", {"sessionId": client.session_id, "modeId": "auto"})
        assert answer == {}
        assert client.updates("current_mode_update")[-1]["currentModeId"] == "auto"
        assert client.updates("config_option_update")[-1]["configOptions"][0]["currentValue"] == "auto"
        with pytest.raises(AcpError):
            await client.request("session/set_mode", {"sessionId": client.session_id, "modeId": "warp"})


async def test_a_question_is_asked_with_a_form(demo: DemoSetup) -> None:
    async with demo.session({"elicitation": {"form": {}}}) as client:
        client.handlers["elicitation/create"] = lambda p: {
            "action": "accept",
            "content": {"name": p["requestedSchema"]["properties"]["name"]["title"]},
        }
        await client.prompt("question")
        assert client.text() == "Hello Your name!"
        client.handlers["elicitation/create"] = lambda _: {"action": "decline"}
        await client.prompt("question")
        assert client.text().endswith("keep it to yourself.")


async def test_a_picture_is_sent(demo: DemoSetup) -> None:
    async with demo.session() as client:
        await client.prompt("image")
        assert client.updates("agent_message_chunk")[0]["content"]["mimeType"] == "image/png"


async def test_a_slow_answer_can_be_cancelled(demo: DemoSetup) -> None:
    async with demo.session() as client:
        n = client.send_prompt("slowly")
        await client.until(lambda: client.text() or None)
        client.cancel()
        assert await client.response_to(n) == {"stopReason": "cancelled"}
        assert (await client.prompt("hello again"))["stopReason"] == "end_turn"


async def test_a_prompt_can_be_cancelled_at_once(demo: DemoSetup) -> None:
    async with demo.session() as client:
        n = client.send_prompt("slowly")
        client.cancel()
        assert await client.response_to(n) == {"stopReason": "cancelled"}


async def test_an_open_permission_can_be_cancelled(demo: DemoSetup) -> None:
    async with demo.session() as client:
        n = client.send_prompt("ask")
        await client.until(lambda: [line for line in client.lines if isinstance(line, Request)] or None)
        client.cancel()
        assert await client.response_to(n) == {"stopReason": "cancelled"}


async def test_two_prompts_at_once_are_refused(demo: DemoSetup) -> None:
    async with demo.session() as client:
        first = client.send_prompt("slowly")
        with pytest.raises(AcpError, match="one prompt at a time"):
            await client.prompt("hello")
        client.cancel()
        assert await client.response_to(first) == {"stopReason": "cancelled"}


async def test_a_prompt_can_make_the_agent_fail_refuse_and_crash(demo: DemoSetup) -> None:
    async with demo.session() as client:
        with pytest.raises(AcpError, match="asked me to fail"):
            await client.prompt("fail")
        assert await client.prompt("refuse") == {"stopReason": "refusal"}
        client.send_prompt("crash")
        assert await client.wait_for_exit() == 3


async def test_another_process_loads_the_conversation(demo: DemoSetup) -> None:
    async with demo.session() as client:
        await client.prompt("good morning")
        text, session_id = client.text(), client.session_id
    async with demo.start() as client:
        client.session_id = session_id
        await client.open(str(demo.workspace), {}, method="session/load")
        assert client.text("user_message_chunk") == "good morning"
        assert client.text() == text


async def test_another_process_resumes_without_repeating_the_conversation(demo: DemoSetup) -> None:
    async with demo.session() as client:
        await client.request("session/set_mode", {"sessionId": client.session_id, "modeId": "auto"})
        await client.prompt("good morning")
        session_id = client.session_id
    async with demo.start() as client:
        client.session_id = session_id
        answer = await client.open(str(demo.workspace), {}, method="session/resume")
        assert answer["modes"]["currentModeId"] == "auto"
        assert client.text() == ""
        assert (await client.prompt("hello"))["stopReason"] == "end_turn"


@pytest.mark.parametrize("id", ["missing", "../../etc/passwd", ""])
async def test_an_unknown_session_is_not_found(demo: DemoSetup, id: str) -> None:
    async with demo.start() as client:
        client.session_id = id
        with pytest.raises(AcpError) as refused:
            await client.open(str(demo.workspace), {}, method="session/load")
        assert refused.value.code == -32002


async def test_the_agent_survives_invalid_input_and_ends_when_its_input_ends(demo: DemoSetup) -> None:
    async with demo.session() as client:
        client.write(b'nonsense\n{"id": 5}\n[]\n{"method": "session/cancel", "params": 3}\n')
        with pytest.raises(AcpError) as refused:
            await client.request("no/such_method", {})
        assert refused.value.code == -32601
        client.close_input()
        assert await client.wait_for_exit() == 0


async def test_the_agent_ends_with_its_input_during_a_turn(demo: DemoSetup) -> None:
    async with demo.session() as client:
        client.send_prompt("slowly")
        await client.until(lambda: client.text() or None)
        client.close_input()
        assert await client.wait_for_exit() == 0


async def test_the_agent_prints_its_version() -> None:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "--version", stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    output, _ = await process.communicate()
    assert output.startswith(b"bullpen-demo-agent ")


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("", []),
        ("good morning", []),
        ("Help!", [RequestedAction("help")]),
        ("/help", [RequestedAction("help")]),
        (
            "plan, edit notes.md and run date",
            [RequestedAction("plan"), RequestedAction("edit", "notes.md"), RequestedAction("run", "date")],
        ),
        ("edit `my file`", [RequestedAction("edit", "my file")]),
        ("please write src/x.py.", [RequestedAction("edit", "src/x.py")]),
        ("edit, then fail", [RequestedAction("edit", "demo.txt"), RequestedAction("fail")]),
        ("run `ls -l` and then crash", [RequestedAction("run", "ls -l")]),
        ("run make test", [RequestedAction("run", "make test")]),
        ("run\nslowly", [RequestedAction("run", "date"), RequestedAction("slow")]),
    ],
)
def test_actions_are_parsed_from_simple_words(text: str, actions: list[RequestedAction]) -> None:
    assert parse_actions(text) == actions
