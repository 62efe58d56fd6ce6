"""Create a server with repositories that have a history, and a session in each state."""

import subprocess
from pathlib import Path
from typing import Any

from support.listening_programs import type_line, until_ports
from support.server import Server
from support.session_client import SessionClient, define_scripted

from . import agent_scripts

WEB_PORT = 3000
ENVIRONMENT = {
    "AGENT_MAX_SESSIONS": "20",
    "BULLPEN_SANDBOX_TOOLCHAINS": str(Path(__file__).parents[2]),  # the scripted agent is in this tree
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


class ExampleServer:
    """A server with example sessions, and the paths of the sessions and workers for the screenshots."""

    def __init__(self, directory: Path) -> None:
        self.workspace = directory / "ada"
        self.workspace.mkdir()
        self.server = Server(directory / "home", self.workspace, ENVIRONMENT)
        self.asking = self.done = self.terminal = self.diff = self.document = self.web = ""

    async def create_sessions(self) -> None:
        atlas = await self._repository("atlas")
        website = await self._repository("website")
        workspace = self.workspace / "atlas.worktrees/flaky-import"
        self.done = await self._session(
            atlas, "Speed up the tile cache", "tile-cache", agent_scripts.finished_turn(), "turn_end"
        )
        await self._session(
            website, "Write the release notes", "release-notes", agent_scripts.running_turn(), "tool_call"
        )
        await self._session(
            website, "Update the page's packages", "packages", agent_scripts.failing_turn(), "worker_failed"
        )
        self.asking = await self._session(
            atlas,
            "Fix the flaky import test",
            "flaky-import",
            agent_scripts.permission_request(workspace),
            "permission",
        )
        write(workspace, agent_scripts.changed_files())
        self.diff = await self._worker(self.asking, type="diff")
        self.document = await self._worker(self.asking, type="markdown", filePath="docs/cache.md")
        self.terminal = await self._worker(self.asking, type="terminal", name="Shell")
        self.web = await self._web(self.done)
        await self._allow("host", "packages.example.org", atlas)
        await self._allow("read", str(self.workspace / "elevations"), None)

    async def _allow(self, kind: str, target: str, repository_id: str | None) -> None:
        grant = {"kind": kind, "target": target, "repoId": repository_id}
        await self.server.call("PUT", "/api/sandbox/grants", 200, json=grant)

    async def _repository(self, name: str) -> str:
        directory = self.workspace / name
        write(directory, agent_scripts.files())
        git(directory, "init", "-q", "-b", "main")
        for subject in ("Begin", "Draw borders last", "Keep tiles parsed"):
            write(directory, {"CHANGES": subject + "\n"})
            git(directory, "add", ".")
            git(directory, "commit", "-qm", subject)
        answer = await self.server.call("POST", "/api/repositories", 201, json={"path": str(directory)})
        return str(answer["id"])

    async def _session(
        self, repository_id: str, title: str, branch: str, script: list[agent_scripts.Step], until: str
    ) -> str:
        """Create and prompt a session, wait for an event of this type, and return the id of the session."""
        await define_scripted(self.server, branch, {"prompts": [script]}, name="Scout")
        body = {"repoId": repository_id, "branch": branch, "agentId": branch, "title": title}
        session = await self.server.call("POST", "/api/sessions", 201, json=body)
        talk = SessionClient(self.server, session)
        await talk.prompt(PROMPTS[branch])
        await talk.wait_for_event(until)
        return talk.id

    async def _web(self, session_id: str) -> str:
        """Start a web server with the example page in a terminal; return the path of the terminal."""
        write(self.workspace / "site", {"index.html": agent_scripts.page()})
        worker = await self.server.new_terminal(session_id, name="Web")
        command = f"python3 -m http.server {WEB_PORT} --bind 127.0.0.1 --directory ~/site"
        await type_line(self.server, worker, f"PS1='ada@atlas$ '; clear; {command}")
        await until_ports(self.server, session_id, {WEB_PORT})
        return f"{session_id}/{worker['id']}"

    async def _worker(self, session_id: str, **body: Any) -> str:
        answer = await self.server.call("POST", f"/api/sessions/{session_id}/workers", 201, json=body)
        return f"{session_id}/{answer['id']}"


PROMPTS = {
    "tile-cache": "Make the second map open faster, and show me how you measured it",
    "release-notes": "Write the release notes of 1.5",
    "packages": "Update what the page is built from",
    "flaky-import": "The import test fails about once in ten runs. Find out why, and fix it.",
}


def write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def git(directory: Path, *arguments: str) -> None:
    name = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", *name, *arguments], cwd=directory, check=True)
