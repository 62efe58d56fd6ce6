"""Send the example requests of docs/protocol.md to a real server, with real ids instead of the shown ones."""

import json
from typing import Any

import httpx

from docs.example_prerequisites import prepare
from docs.protocol_page import CODE, HOME, REPOSITORY, SESSION, TOKEN, WORKER, Section
from support.pictures import png
from support.repositories import Repo
from support.server import Server


def check_same_shape(shown: Any, real: Any, path: str = "$") -> None:
    """Check that both values have the same fields and types; null and an empty list match every value."""
    match shown, real:
        case (None, _) | (_, None) | ([], list()) | (list(), []):
            return
        case dict(), dict() if path.endswith((".metadata", ".toolCall", ".startedWith")):
            return  # free content of a client or an agent, or one of many settings
        case dict(), dict():
            assert set(shown) == set(real), f"{path} has other fields"
            for name in shown:
                check_same_shape(shown[name], real[name], f"{path}.{name}")
        case list(), list():
            check_same_shape(shown[0], real[0], f"{path}[0]")
        case _:
            assert type(shown) is type(real), f"{path} is {real!r}, not like {shown!r}"


class ExampleServer:
    """A server, and the real ids and paths that replace those in the examples."""

    def __init__(self, server: Server, real_ids: dict[str, str]) -> None:
        self.server = server
        self._real_ids = real_ids

    @classmethod
    async def set_up(cls, server: Server, name: str = "examples") -> "ExampleServer":
        home = server.workspace / name
        for repository in ("project", "other"):
            Repo(home / repository)
        (home / "project" / "readme.txt").write_text("hello\nthere\n")
        project = str(home / "project")
        registered = await server.call("POST", "/api/repositories", json={"path": project})
        session = await server.new_session(locationPath=project, title="fix the build")
        worker = await server.new_terminal(session["id"])
        token = await server.call("POST", "/api/tokens", json={"name": "phone", "scope": "view"})
        code = await server.call("POST", "/api/login-codes")
        return cls(
            server,
            {
                SESSION: session["id"],
                WORKER: worker["id"],
                REPOSITORY: registered["id"],
                TOKEN: token["id"],
                CODE: code["code"],
                HOME: str(home),
                "https://example.org": "http://127.0.0.1:1",  # nothing listens there
            },
        )

    def with_real_ids(self, text: str) -> str:
        for shown, real in self._real_ids.items():
            text = text.replace(shown, real)
        return text

    def real_path(self, path: str) -> str:
        first = {"repositories": REPOSITORY, "tokens": TOKEN}.get(path.split("/")[2], SESSION)
        return self.with_real_ids(
            path.replace("{id}", first).replace("{wid}", WORKER).replace("{path}", "readme.txt")
        )

    async def send_request(self, section: Section) -> httpx.Response:
        """Send the request of a section. Return the response."""
        if section.path.endswith("{wid}/restart"):
            await self._end_worker_by_itself()
        path = section.path
        for parameter, real in (await prepare(self.server, self.with_real_ids(SESSION), section)).items():
            path = path.replace(parameter, real)
        if "{name}" in path:
            path = await self._add_worktree(path)
        bodies = section.examples("request")
        if section.path.startswith("/api/sessions/{id}/images"):
            return await self._send_image_request(section)
        if section.method == "PUT" and section.path == "/api/recordings/{id}":
            return await self._put_recording()
        body = json.loads(self.with_real_ids(json.dumps(bodies[0]))) if bodies else None
        query = await self._query(section)
        answer = await self.server.http.request(section.method, self.real_path(path), json=body, params=query)
        if section.path.endswith("/rotate"):
            self.server.token = answer.json()["token"]
            self.server.http.headers["Authorization"] = f"Bearer {self.server.token}"
        return answer

    async def _query(self, section: Section) -> dict[str, str] | None:
        if section.path == "/api/search":
            return {"q": "build"}
        if section.name == "DELETE /api/roots":
            root = {"path": self.with_real_ids(f"{HOME}/other")}
            await self.server.call("POST", "/api/roots", 201, json=root)
            return root
        return None

    async def _add_worktree(self, path: str) -> str:
        worktrees = self.real_path("/api/repositories/{id}/worktrees")
        await self.server.call("POST", worktrees, 201, json={"branch": "topic"})
        if path.endswith("/restore"):
            await self.server.call("DELETE", f"{worktrees}/topic")
        return path.replace("{name}", "topic")

    async def _send_image_request(self, section: Section) -> httpx.Response:
        path = self.real_path("/api/sessions/{id}/images")
        added = await self.server.http.post(path, content=png())
        if section.method == "POST":
            return added
        return await self.server.http.get(f"{path}/{added.json()['id']}")

    async def _put_recording(self) -> httpx.Response:
        session = self.real_path("/api/sessions/{id}")
        zip = (await self.server.http.get(f"{session}/export")).content
        await self.server.call("POST", f"{session}/complete")
        await self.server.call("DELETE", f"{session}?purge=true")
        return await self.server.http.put(self.real_path("/api/recordings/{id}"), content=zip)

    async def _end_worker_by_itself(self) -> None:
        async with self.server.socket(self.real_path("/ws/session/{id}/worker/{wid}")) as ws:
            await ws.send(json.dumps({"type": "input", "data": "exit\r"}))
            await self.server.worker_in(self.with_real_ids(SESSION), self.with_real_ids(WORKER), "exited")
