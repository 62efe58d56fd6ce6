"""The examples of docs/agents.md: definitions are valid, commands run, and an agent gets its tools."""

import asyncio
import json
import re
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from bullpen.agents.definitions import builtin, load, read_file
from docs.page_examples import BIN, ROOT, run_line, uses_examples
from support.server import Server
from support.session_client import SessionClient

PAGE = (ROOT / "docs" / "agents.md").read_text()
DEFINITION_START = 'name = "Mine"\nkind = "acp"\ncommand = ["my-agent"]\n'


@uses_examples("docs/agents.md", 'name = "Mine"\nkind = "acp"', 'name = "Mine"\nkind = "pty"', "loginCommand")
def test_the_definitions_of_the_page_are_valid(shown_examples: list[str], tmp_path: Path) -> None:
    acp, pty, login = shown_examples
    for name, text in {"acp": acp, "pty": pty, "login": DEFINITION_START + login}.items():
        (tmp_path / f"{name}.toml").write_text(text)
    assert load(tmp_path).problems == []
    assert read_file(tmp_path / "acp.toml").env == {"MY_AGENT_MODE": "quiet"}
    signs = read_file(tmp_path / "pty.toml").signs
    assert re.search(signs.asking[0], "Allow this? (y/n)")
    assert read_file(tmp_path / "login.toml").login.env == ("MY_API_KEY",)


@uses_examples(
    "docs/agents.md",
    "npm install -g @agentclientprotocol/claude-agent-acp",
    "npm install -g @zed-industries/codex-acp",
    "npm install -g @google/gemini-cli",
    "npm install -g opencode-ai",
    "npm install -g @github/copilot",
    "npm install -g @qwen-code/qwen-code",
    "python -m pip install aider-install",
)
def test_the_install_commands_of_the_page_are_those_of_the_definitions(shown_examples: list[str]) -> None:
    rows = dict(re.findall(r"^\| `([\w-]+)` \| .*? \| `(.*?)` \|$", PAGE, re.MULTILINE))
    assert sorted(rows.values()) == sorted(shown_examples)
    assert {agent: builtin()[agent].install for agent in rows} == rows


@uses_examples("docs/agents.md", 'bullpen run "plan', 'bullpen run "help"')
async def test_the_demo_agent_does_what_the_prompts_of_the_page_ask(
    shown_examples: list[str], server: Server
) -> None:
    env = server.environment() | {"HOME": str(server.workspace)}
    outputs = [await asyncio.to_thread(run_line, line, server.workspace, env) for line in shown_examples]
    assert "plan" in outputs[1]
    first, *_ = (await server.call("GET", "/api/sessions"))["sessions"][::-1]
    talk = SessionClient(server, first)
    await talk.wait_for_event("plan")
    await talk.open_permission()


@uses_examples("docs/agents.md", "curl -s")
async def test_a_terminal_agent_reports_its_activity_with_the_command_of_the_page(
    shown_examples: list[str], server: Server
) -> None:
    definition = {"name": "Mine", "kind": "pty", "command": ["bash", "--norc"]}
    await server.call("PUT", "/api/agents/mine", 200, json=definition)
    talk = SessionClient(server, await server.new_session())
    workers = f"{talk.path}/workers"
    worker = await server.call("POST", workers, 201, json={"type": "agent", "agentId": "mine"})
    await server.worker_in(talk.id, worker["id"], "active")
    async with server.socket(f"/ws/session/{talk.id}/worker/{worker['id']}") as ws:
        await ws.send(json.dumps({"type": "input", "data": f"{shown_examples[0]}\r"}))
        await talk.wait_for_event(
            "worker_activity", activity="asking", why="it says so: may I run the tests?"
        )


@uses_examples("docs/agents.md", "bullpen token add helper", '{"mcpServers"')
async def test_an_agent_with_that_token_has_the_tools_of_the_page(
    shown_examples: list[str], server: Server
) -> None:
    add, configuration = shown_examples
    output = await asyncio.to_thread(run_line, add, server.workspace, server.environment())
    (token,) = re.findall(r"^bpt_\S+$", output, re.MULTILINE)
    program = json.loads(configuration.replace("bpt_…", token))["mcpServers"]["bullpen"]
    program["env"] |= {"BULLPEN_HOME": str(server.home), "PATH": str(BIN)}
    async with (
        stdio_client(StdioServerParameters(**program)) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert not (await session.call_tool("list_sessions", {})).is_error
    table = PAGE.split("| tool | does |\n", 1)[1].split("\n\n", 1)[0]
    documented = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert documented - tools == {"ask_human"}  # only an agent that runs in Bullpen has it
    assert tools <= documented
