"""The server is killed while it creates, removes and restores worktrees: none is left incomplete."""

import asyncio
import json
import random
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from bullpen import clock
from support.registered_repository import RegisteredRepository, directory_contents
from support.repositories import Repo
from support.server import Server

SECONDS = 60.0
SETUP = "echo ran >> setup.log; sleep 0.2; echo done >> setup.log"

Send = Callable[[], Awaitable[httpx.Response]]


class Killer:
    """Sends requests and kills the server at a random moment of the time that such a request takes."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._took: dict[str, float] = {}
        self.unanswered = 0

    async def measure(self, action: str, send: Send) -> None:
        begun = clock.monotonic()
        assert (await send()).is_success
        self._took[action] = clock.monotonic() - begun

    async def insist(self, action: str, send: Send) -> httpx.Response:
        """Return the answer; if the first server was killed before it answered, ask the second one."""
        sending = asyncio.create_task(self._try(send))
        await asyncio.wait([sending], timeout=random.uniform(0, self._took[action]))
        await self._server.kill()
        answer = await sending
        await self._server.start()
        if answer is None:
            self.unanswered += 1
            answer = await send()
        return answer

    async def _try(self, send: Send) -> httpx.Response | None:
        try:
            return await send()
        except httpx.TransportError:
            return None


class WorktreeOrders:
    """The orders to create, remove and restore one worktree."""

    def __init__(self, repository: RegisteredRepository, name: str) -> None:
        self._repository = repository
        self._name = name
        self._keys = {verb: {"Idempotency-Key": str(uuid.uuid4())} for verb in ("make", "restore")}
        self.path = repository.repo.path.with_name("repo.worktrees") / name

    async def make(self) -> httpx.Response:
        body = {"branch": self._name}
        return await self._repository.server.http.post(
            self._repository.url, json=body, headers=self._keys["make"]
        )

    async def remove(self) -> httpx.Response:
        url = f"{self._repository.url}/{self._name}"
        return await self._repository.server.http.delete(url, params={"force": "true"})

    async def restore(self) -> httpx.Response:
        url = f"{self._repository.url}/{self._name}/restore"
        return await self._repository.server.http.post(url, json={}, headers=self._keys["restore"])


@pytest.mark.timeout(600)
async def test_a_worktree_is_created_removed_and_restored_once_while_the_server_is_killed(
    server: Server, workspace: Path, faults: int
) -> None:
    repo = Repo(workspace / "repo")
    repo.write(".worktreeinclude", ".env\n")
    repo.write(".env", "secret")
    repository = await RegisteredRepository.register(server, repo)
    await repository.set(setup=SETUP)
    killer = Killer(server)
    first = WorktreeOrders(repository, "first")
    for action in ("make", "remove", "restore"):
        await killer.measure(action, getattr(first, action))
    all_orders = [WorktreeOrders(repository, f"topic-{number}") for number in range(faults // 5)]
    for orders in all_orders:
        made = await killer.insist("make", orders.make)
        assert made.status_code == 201, made.text
        assert made.json()["path"] == str(orders.path)
        assert (orders.path / "setup.log").read_text() == "ran\ndone\n"
        assert (orders.path / ".env").read_text() == "secret"
        before = directory_contents(orders.path)
        removed = await killer.insist("remove", orders.remove)
        assert removed.status_code in (200, 404), removed.text  # 404: the first server had done it
        assert not orders.path.exists()
        restored = await killer.insist("restore", orders.restore)
        assert restored.status_code == 200, restored.text
        assert directory_contents(orders.path) == before
    assert killer.unanswered, "no kill happened, so nothing was tested"
    await check_nothing_is_left(repository, [first, *all_orders])


async def check_nothing_is_left(repository: RegisteredRepository, all_orders: list[WorktreeOrders]) -> None:
    names = {"main", *(orders.path.name for orders in all_orders)}
    assert {each["name"] for each in await repository.list()} == names
    assert {each["branch"] for each in await repository.list()} == names
    refs = repository.repo.git("for-each-ref", "--format=%(refname)").split()
    assert set(refs) == {f"refs/heads/{name}" for name in names}
    assert {path.name for path in all_orders[0].path.parent.iterdir()} == names - {"main"}
    assert list((repository.server.home / "trash").iterdir()) == []
    records = (
        repository.server.home / "worktrees"
    ).iterdir()  # a record may stay for a day after its request was answered
    assert all(json.loads(record.read_text())["done"] for record in records)
