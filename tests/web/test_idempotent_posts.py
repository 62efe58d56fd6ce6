"""Every POST with an idempotency key has its effect once and the same response when it is repeated."""

import json
import sqlite3
import subprocess
from typing import Any

import pytest
from fastapi.routing import APIRoute

from bullpen.web.app import every_route
from support.pictures import png
from support.registered_repository import RegisteredRepository
from support.repositories import Repo
from support.scripted_agent.journal import prompts_in
from support.server import Server
from support.session_client import SessionClient, define_scripted
from web.clients import anonymous_client, bearer_headers, new_login_code, new_token_headers
from web.repeated_posts import DoneOnce, Post, check_posts_are_idempotent

session_loop = pytest.mark.asyncio(loop_scope="session")

ROUTES_WITHOUT_AGENT = {
    "/api/clones",
    "/api/import",
    "/api/login",
    "/api/login-codes",
    "/api/recordings/rebuild",
    "/api/repositories",
    "/api/repositories/{repo_id}/worktrees",
    "/api/repositories/{repo_id}/worktrees/{name}/restore",
    "/api/roots",
    "/api/rules",
    "/api/sessions",
    "/api/sessions/{session_id}/complete",
    "/api/sessions/{session_id}/leave",
    "/api/sessions/{session_id}/reopen",
    "/api/sessions/{session_id}/seen",
    "/api/sessions/{session_id}/share",
    "/api/sessions/{session_id}/workers",
    "/api/sessions/{session_id}/workers/{worker_id}/restart",
    "/api/tokens",
    "/api/tokens/rotate",
}
COMMENT = {"text": "A remark:", "comments": [{"path": "readme.txt", "line": 1, "text": "say it once"}]}
COMMENTED = "A remark:\n\n`readme.txt`, line 1:\nsay it once"
RULE = {"name": "reading", "agentId": "demo", "kind": "read", "answer": "allow"}
AGENT_ROUTES = {
    "/api/agents",
    "/api/sessions/{session_id}/cancel",
    "/api/sessions/{session_id}/diff/comments",
    "/api/sessions/{session_id}/images",
    "/api/sessions/{session_id}/permissions/{permission_id}",
    "/api/sessions/{session_id}/prompt",
    "/api/sessions/{session_id}/questions/{question_id}",
    "/api/sessions/{session_id}/queue",
    "/api/sessions/{session_id}/queue/pause",
    "/api/sessions/{session_id}/queue/resume",
    "/api/sessions/{session_id}/queue/{message_id}/move",
    "/api/sessions/{session_id}/queue/{message_id}/send-now",
    "/api/sessions/{session_id}/restart",
    "/api/sessions/{session_id}/workers/{worker_id}/login",
    "/api/workers/{worker_id}/activity",
    "/api/workers/{worker_id}/questions",
}


def test_every_post_route_is_tested() -> None:
    routes = (route for route in every_route() if isinstance(route, APIRoute))
    assert {
        route.path for route in routes if "POST" in (route.methods or ())
    } == ROUTES_WITHOUT_AGENT | AGENT_ROUTES


class PostsWithoutAgent:
    """The POST requests that need no agent, and the check of the effect of each."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def posts(self) -> list[Post]:
        server = self.server
        repository = server.workspace / "project"
        subprocess.run(["git", "init", "-q", repository], check=True)
        self.registered = await RegisteredRepository.register(server, Repo(server.workspace / "registered"))
        await self.registered.add(branch="removed")
        await self.registered.remove("removed")
        worktrees, of_repository = self.registered.url, "/api/repositories/{repo_id}/worktrees"
        self.session, self.ended = await server.new_session(), await server.new_session()
        await server.new_terminal(self.ended["id"])
        self.worker = await self._exited_terminal()
        session, workers = (
            f"/api/sessions/{self.session['id']}",
            f"/api/sessions/{self.session['id']}/workers",
        )
        of_session = "/api/sessions/{session_id}"
        return [
            # This is the first request: the owner has another token afterwards.
            Post("/api/tokens/rotate", "/api/tokens/rotate", None, self._one_rotation),
            Post("/api/sessions", "/api/sessions", {"title": "only one"}, self._one_session),
            Post(f"{of_session}/leave", f"{session}/leave", None, self._still_active),
            Post(f"{of_session}/seen", f"{session}/seen", {"seq": 1}, self._still_active),
            Post("/api/clones", "/api/clones", {"url": "http://127.0.0.1:1/cloned"}, self._one_clone),
            Post("/api/rules", "/api/rules", RULE, self._one_rule),
            Post("/api/roots", "/api/roots", {"path": str(repository)}, self._one_root),
            Post(f"{of_session}/workers", workers, {"type": "terminal", "role": "new"}, self._one_worker),
            Post(
                f"{of_session}/workers/{{worker_id}}/restart",
                f"{workers}/{self.worker['id']}/restart",
                None,
                self._second_run,
            ),
            Post(f"{of_session}/complete", f"/api/sessions/{self.ended['id']}/complete", None, self._one_end),
            Post(
                f"{of_session}/reopen", f"/api/sessions/{self.ended['id']}/reopen", None, self._one_reopening
            ),
            Post("/api/repositories", "/api/repositories", {"path": str(repository)}, self._one_repository),
            Post(of_repository, worktrees, {"prompt": "only one"}, self._one_worktree),
            Post(f"{of_repository}/{{name}}/restore", f"{worktrees}/removed/restore", {}, self._restored),
            Post("/api/tokens", "/api/tokens", {"name": "only one"}, self._one_token),
            Post("/api/login", "/api/login", {"code": await new_login_code(server)}, self._one_device),
            Post("/api/login-codes", "/api/login-codes", None, self._one_login),
            Post("/api/import", "/api/import", self._import_body(), self._one_import),
            Post(f"{of_session}/share", f"{session}/share", {"expiresIn": 60}, self._one_share),
            Post("/api/recordings/rebuild", "/api/recordings/rebuild", self._rebuild_body(), self._rebuilt),
        ]

    async def _exited_terminal(self) -> dict[str, Any]:
        session_id = self.session["id"]
        worker = await self.server.new_terminal(session_id)
        async with self.server.socket(f"/ws/session/{session_id}/worker/{worker['id']}") as ws:
            await ws.send(json.dumps({"type": "input", "data": "exit\r"}))
            return await self.server.worker_in(session_id, worker["id"], "exited")

    def _import_body(self) -> dict[str, Any]:
        directory = str(self.server.workspace / "project")
        return {
            "sessions": [{"id": "old", "worktreePath": directory, "createdAt": "2025-01-01T00:00:00.000Z"}]
        }

    async def _one_import(self, _: Any) -> None:
        sessions = (await self.server.call("GET", "/api/sessions?q=project"))["sessions"]
        assert [len(session["workers"]) for session in sessions] == [1]

    async def _one_root(self, answer: Any) -> None:
        roots = (await self.server.call("GET", "/api/roots"))["roots"]
        assert roots.count(answer) == 1

    async def _one_clone(self, answer: Any) -> None:
        assert answer["path"] == str(self.server.workspace / "bullpen/cloned")
        assert (await self.server.http.get(f"/api/clones/{answer['id']}")).status_code == 404  # of the killed

    async def _one_rule(self, _: Any) -> None:
        assert len((await self.server.call("GET", "/api/rules"))["rules"]) == 1

    async def _one_session(self, _: Any) -> None:
        assert (await self.server.call("GET", "/api/sessions?q=only+one"))["total"] == 1

    async def _still_active(self, _: Any) -> None:
        assert (await self.server.call("GET", f"/api/sessions/{self.session['id']}"))["status"] == "active"

    async def _one_worker(self, _: Any) -> None:
        workers = (await self.server.call("GET", f"/api/sessions/{self.session['id']}/workers"))["workers"]
        assert [worker["role"] for worker in workers] == ["terminal", "new"]

    async def _second_run(self, answer: Any) -> None:
        assert answer["run"] == 2
        path = f"/api/sessions/{self.session['id']}/workers/{self.worker['id']}"
        assert (await self.server.call("GET", path))["run"] == 2

    async def _one_end(self, _: Any) -> None:
        events = await self.server.call("GET", f"/api/sessions/{self.ended['id']}/events?types=session_end")
        assert len(events["events"]) == 1

    async def _one_reopening(self, _: Any) -> None:
        path = f"/api/sessions/{self.ended['id']}/events?types=session_reopened"
        assert len((await self.server.call("GET", path))["events"]) == 1

    async def _one_rotation(self, answer: Any) -> None:
        assert (self.server.home / "token").read_text().strip() == answer["token"]
        with sqlite3.connect(self.server.home / "bullpen.db") as database:
            query = "SELECT value FROM settings WHERE key = 'owner.retired'"
            assert len(json.loads(database.execute(query).fetchone()[0])) == 1
        self.server.http.headers.update(bearer_headers(answer["token"]))

    async def _one_repository(self, _: Any) -> None:
        assert len((await self.server.call("GET", "/api/repositories"))["repositories"]) == 2

    async def _one_worktree(self, _: Any) -> None:
        assert [each["name"] for each in await self.registered.list()].count("only-one") == 1
        assert "only-one-2" not in self.registered.repo.git("branch")

    async def _restored(self, _: Any) -> None:
        assert (await self.registered.get())["trash"] == []

    async def _one_token(self, answer: Any) -> None:
        tokens = (await self.server.call("GET", "/api/tokens"))["tokens"]
        assert [token["name"] for token in tokens].count("only one") == 1
        await self.server.call("GET", "/api/sessions", 200, headers=bearer_headers(answer["token"]))

    async def _one_share(self, answer: Any) -> None:
        tokens = (await self.server.call("GET", "/api/tokens"))["tokens"]
        assert [token["kind"] for token in tokens].count("share") == 1
        path = f"/api/sessions/{self.session['id']}"
        await self.server.call("GET", path, 200, headers=bearer_headers(answer["token"]))

    def _rebuild_body(self) -> dict[str, Any]:
        return {"sessionId": self.ended["id"]}

    async def _rebuilt(self, answer: Any) -> None:
        lines = (self.server.home / "recordings" / self.ended["id"] / "events.jsonl").read_bytes()
        assert answer == {"sessions": 1, "events": lines.count(b"\n")}

    async def _one_device(self, _: Any) -> None:
        tokens = (await self.server.call("GET", "/api/tokens"))["tokens"]
        assert [token["kind"] for token in tokens].count("device") == 1

    async def _one_login(self, answer: Any) -> None:
        async with anonymous_client(self.server) as browser:
            logins = [await browser.post("/api/login", json={"code": answer["code"]}) for _ in range(2)]
        assert [login.status_code for login in logins] == [200, 401]


class AgentPosts:
    """The POST requests to agents: five sessions, each with its agent in another state."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def posts(self) -> list[Post]:
        Repo(self.server.workspace)
        self.journal = await define_scripted(self.server)
        await self._define_login_command()
        begin = [await SessionClient.begin(self.server) for _ in range(5)]
        self.quiet, self.asking, self.wondering, self.busy, self.stopping = begin
        return [
            *self._posts_to_quiet(),
            *await self._posts_to_terminal_agent(),
            await self._answer_to(self.asking, "permission", {"optionId": "yes"}),
            await self._answer_to(
                self.wondering, "question", {"action": "accept", "content": {"name": "Ada"}}
            ),
            *await self._posts_to_queue(),
            *await self._posts_to_stopping(),
        ]

    async def _define_login_command(self) -> None:
        (definition,) = [
            agent
            for agent in (await self.server.call("GET", "/api/agents"))["agents"]
            if agent["id"] == "scripted"
        ]
        body = {key: definition[key] for key in ("name", "kind", "command", "state")} | {
            "loginCommand": ["true"]
        }
        await self.server.call("PUT", "/api/agents/scripted", 200, json=body)

    def _posts_to_quiet(self) -> list[Post]:
        async def prompted(_: Any) -> None:
            await self.quiet.wait_for_event("turn_end")
            assert prompts_in(self.journal).count("[[chunk once]]") == 1

        async def commented(_: Any) -> None:
            assert [text for text in await self._prompts_of_quiet() if "say it once" in text] == [COMMENTED]

        async def image_stored(answer: Any) -> None:
            assert (await self.server.http.get(f"{self.quiet.path}/images/{answer['id']}")).status_code == 200

        async def agent_defined(_: Any) -> None:
            agents = (await self.server.call("GET", "/api/agents"))["agents"]
            assert [agent["id"] for agent in agents].count("another") == 1

        another = {"id": "another", "name": "Another", "kind": "acp", "command": ["true"]}
        return [
            _post_to_session(self.quiet, "/prompt", {"text": "[[chunk once]]"}, prompted),
            _post_to_session(self.quiet, "/diff/comments", COMMENT, commented),
            _post_to_session(self.quiet, "/images", png(), image_stored),
            Post("/api/agents", "/api/agents", another, agent_defined),
        ]

    async def _prompts_of_quiet(self) -> list[str]:
        """Return the texts of all prompts of the quiet session, sent or queued."""
        events = await self.quiet.events()
        sent = [each["data"]["text"] for each in events if each["type"] == "user_prompt"]
        queue = await self.server.call("GET", f"{self.quiet.path}/queue")
        return [*sent, *(item["message"] for item in queue["messages"])]

    async def _posts_to_terminal_agent(self) -> list[Post]:
        definition = {"name": "Silent", "kind": "pty", "command": ["cat"]}
        await self.server.call("PUT", "/api/agents/silent", 200, json=definition)
        body = {"type": "agent", "agentId": "silent"}
        worker = await self.server.call("POST", f"{self.quiet.path}/workers", 201, json=body)
        await self.server.worker_in(self.quiet.id, worker["id"], "active")

        async def reported_once(_: Any) -> None:
            events = [each for each in await self.quiet.events() if each["workerId"] == worker["id"]]
            assert [each["data"].get("activity") for each in events].count("asking") == 1

        async def asked_once(_: Any) -> None:
            assert len((await self.server.call("GET", f"{self.quiet.path}/questions"))["questions"]) == 1

        route, path = "/api/workers/{worker_id}", f"/api/workers/{worker['id']}"
        return [
            Post(f"{route}/activity", f"{path}/activity", {"activity": "asking"}, reported_once),
            Post(f"{route}/questions", f"{path}/questions", {"message": "why?"}, asked_once),
        ]

    async def _answer_to(self, conversation: SessionClient, kind: str, body: dict[str, Any]) -> Post:
        await conversation.prompt(f"[[{kind}]]")
        asked = (await conversation.wait_for_event(kind, status="pending"))["data"]["id"]

        async def answered(_: Any) -> None:
            states = [each["data"]["status"] for each in await conversation.events() if each["type"] == kind]
            assert len(states) == 2

        path = f"{conversation.path}/{kind}s/{asked}"
        return Post(f"/api/sessions/{{session_id}}/{kind}s/{{{kind}_id}}", path, body, answered)

    async def _posts_to_queue(self) -> list[Post]:
        busy = self.busy
        await busy.prompt("[[wait_cancel]]")
        await busy.wait_for_event("turn_start")
        items = {}
        for message in ("a", "b", "c", "[[sleep 60]]"):
            items[message] = (
                await self.server.call("POST", f"{busy.path}/queue", 201, json={"message": message})
            )["id"]

        async def in_order(_: Any) -> None:
            queue = await self.server.call("GET", f"{busy.path}/queue")
            assert [item["message"] for item in queue["messages"]] == ["a", "c", "b", "only one"]

        async def sent(_: Any) -> None:
            await busy.wait_for_event("user_prompt", text="[[sleep 60]]")
            assert prompts_in(self.journal).count("[[sleep 60]]") == 1

        moved, now = f"/queue/{items['c']}/move", f"/queue/{items['[[sleep 60]]']}/send-now"
        return [
            _post_to_session(busy, "/queue", {"message": "only one"}, in_order),
            _post_to_session(busy, moved, {"direction": "up"}, in_order, "/queue/{message_id}/move"),
            _post_to_session(busy, "/queue/pause", None, in_order),
            _post_to_session(busy, "/queue/resume", None, in_order),
            _post_to_session(busy, now, None, sent, "/queue/{message_id}/send-now"),
        ]

    async def _posts_to_stopping(self) -> list[Post]:
        conversation = self.stopping
        await conversation.prompt("[[wait_cancel]]")
        await conversation.wait_for_event("turn_start")
        worker = await conversation.worker()

        async def stopped(_: Any) -> None:
            assert [each["type"] for each in await conversation.events()].count("turn_end") == 1

        async def second_run(answer: Any) -> None:
            workers = (await self.server.call("GET", f"{conversation.path}/workers"))["workers"]
            assert (answer["run"], [each["run"] for each in workers]) == (2, [2, 1])

        async def one_login(_: Any) -> None:
            workers = (await self.server.call("GET", f"{conversation.path}/workers"))["workers"]
            assert [each["type"] for each in workers] == ["agent", "terminal"]

        login = f"/workers/{worker['id']}/login"
        return [
            _post_to_session(conversation, "/cancel", None, stopped),
            _post_to_session(conversation, "/restart", None, second_run),
            _post_to_session(conversation, login, None, one_login, "/workers/{worker_id}/login"),
        ]


def _post_to_session(
    conversation: SessionClient,
    path: str,
    body: dict[str, Any] | bytes | None,
    done_once: DoneOnce,
    route: str | None = None,
) -> Post:
    return Post(f"/api/sessions/{{session_id}}{route or path}", f"{conversation.path}{path}", body, done_once)


@pytest.mark.own_server
async def test_every_post_without_an_agent_is_done_once_when_repeated(server: Server) -> None:
    await server.kill()
    server.set(AGENT_WORKSPACE_ROOT="")  # a root can be added only without this setting
    await server.start()
    await server.call("POST", "/api/roots", 201, json={"path": str(server.workspace), "force": True})
    posts = await PostsWithoutAgent(server).posts()
    assert {post.route for post in posts} == ROUTES_WITHOUT_AGENT
    await check_posts_are_idempotent(server, posts)


async def test_every_post_to_an_agent_is_done_once_when_repeated(server: Server) -> None:
    posts = await AgentPosts(server).posts()
    assert {post.route for post in posts} == AGENT_ROUTES
    await check_posts_are_idempotent(server, posts)


@session_loop
async def test_a_failed_request_may_be_repeated_with_its_idempotency_key(shared_server: Server) -> None:
    directory = shared_server.workspace / "later"
    headers = {"Idempotency-Key": "later"}
    body = {"path": str(directory)}
    assert (await shared_server.http.post("/api/repositories", json=body, headers=headers)).status_code == 404
    subprocess.run(["git", "init", "-q", directory], check=True)
    assert (await shared_server.http.post("/api/repositories", json=body, headers=headers)).status_code == 201


@session_loop
async def test_an_idempotency_key_belongs_to_the_credential_that_used_it(shared_server: Server) -> None:
    headers = {"Idempotency-Key": "mine"}
    first = await shared_server.http.post("/api/sessions", json={}, headers=headers)
    other = await shared_server.http.post(
        "/api/sessions", json={}, headers=headers | await new_token_headers(shared_server)
    )
    assert (first.status_code, other.status_code) == (201, 201)
    assert first.json()["id"] != other.json()["id"]


@session_loop
@pytest.mark.parametrize("key", ["", "x" * 201, "tab\there"])
async def test_an_invalid_idempotency_key_is_refused(shared_server: Server, key: str) -> None:
    answer = await shared_server.http.post("/api/sessions", json={}, headers={"Idempotency-Key": key})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid")
