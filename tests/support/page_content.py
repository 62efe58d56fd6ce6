"""Sessions and records that give every view of the page something to show."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted

AGENT_TEXT = "# Found\n\nIt is a [needle](https://example.org).\n\n```python\nprint('needle')  # here\n```\n"
COST = {"amount": 1, "currency": "USD"}
USAGE = {"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": COST}
LONG = "".join(f"line {n}\n" for n in range(60))
CHANGE = {"type": "diff", "path": "/srv/long.txt", "oldText": "", "newText": LONG}
RULE = {
    "name": "read",
    "agentId": "scripted",
    "kind": "read",
    "answer": "allow",
    "path": None,
    "command": None,
}
GRANT = {"kind": "read", "target": "/srv/maps"}
# All colours but black, which is a background colour: in the dark theme it is invisible.
COLORS = r"for n in 31 32 33 34 35 36 37 90 91 92 93 94 95 96 97; do printf '\033[%smword\033[m ' $n; done"


@dataclass(frozen=True)
class PageContent:
    """A session with an open permission, and one session for each other state that a view shows."""

    server: Server
    talk: SessionClient
    asking: SessionClient
    failed: SessionClient
    archived: SessionClient
    refused: SessionClient

    @classmethod
    async def create(cls, workspace: Path, server: Server) -> Self:
        repo = Repo(workspace)
        repo.write("readme.txt", "hello\nworld\n")
        repo.write("notes.md", "# Notes\n\n- one\n")
        (workspace / "docs").mkdir()
        await server.call("POST", "/api/repositories", 201, json={"path": str(workspace)})
        tools = [{"do": "tool"}, {"do": "tool"}, {"do": "tool", "kind": "edit", "content": [CHANGE]}]
        first = [
            {"do": "update", "update": USAGE},
            {"do": "plan"},
            *tools,
            {"do": "chunk", "text": AGENT_TEXT},
        ]
        await define_scripted(server, script={"prompts": [first, [{"do": "permission"}]]})
        await define_scripted(server, "other")
        return cls(
            server,
            await _asking_permission(server),
            await _asking_question(server),
            await _failed(server),
            await _archived(server),
            await _refused(server),
        )

    async def add_records(self) -> None:
        """Add a rule, a token, a grant and a share link."""
        await self.server.call("POST", "/api/rules", 201, json=RULE)
        await self.server.call("POST", "/api/tokens", 201, json={"name": "ci", "scope": "view"})
        await self.server.call(
            "PUT", "/api/sandbox/grants", 200, json={"kind": "read", "target": "/srv/maps"}
        )
        await self.share_link()

    async def share_link(self) -> str:
        share = await self.server.call("POST", f"{self.talk.path}/share", 201, json={"expiresIn": 600})
        return str(share["url"])


async def _asking_permission(server: Server) -> SessionClient:
    talk = await SessionClient.begin(server, title="Seen by axe")
    await talk.run_turn("the needle, please")
    await _print_colors(talk)
    await talk.prompt("and now?")
    await talk.open_permission()
    return talk


async def _asking_question(server: Server) -> SessionClient:
    talk = await SessionClient.begin(server, "other", title="With a question")
    await talk.prompt("[[question 'your name?']]")
    await talk.wait_for_event("question")
    return talk


async def _failed(server: Server) -> SessionClient:
    talk = await SessionClient.begin(server, "other", title="With a crash")
    await talk.prompt("[[crash]]")
    await talk.wait_for_event("worker_failed")
    return talk


async def _archived(server: Server) -> SessionClient:
    talk = await SessionClient.begin(server, "other", title="In the archive")
    await talk.run_turn("[[chunk done]]")
    await server.call("POST", f"{talk.path}/complete", 200)
    return talk


async def _refused(server: Server) -> SessionClient:
    """Create a session without a sandbox whose agent was refused a file outside its workspace."""
    talk = await SessionClient.begin(server, "other", title="Refused a file", sandbox="open")
    await talk.run_turn("""[[ask method=fs/read_text_file 'params={"path": "/srv/notes.txt"}']]""")
    return talk


async def _print_colors(talk: SessionClient) -> None:
    """Print coloured text in a terminal and end it: a replay is complete only for an ended terminal."""
    terminal = await talk.server.new_terminal(talk.id)
    async with talk.server.socket(f"/ws/session/{talk.id}/worker/{terminal['id']}") as socket:
        await socket.send(json.dumps({"type": "input", "data": f"{COLORS}; exit\n"}))
        await talk.server.worker_in(talk.id, terminal["id"], "exited")
