"""The server is killed while it makes, removes and restores worktrees: each is whole, or never was."""

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
    """Sends requests that are killed on their way, at a moment of the time such a one takes."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._took: dict[str, float] = {}
        self.lost = 0

    async def measure(self, what: str, send: Send) -> None:
        begun = clock.monotonic()
        assert (await send()).is_success
        self._took[what] = clock.monotonic() - begun

    async def insist(self, what: str, send: Send) -> httpx.Response:
        """The answer of the second server, when the first was killed before it gave one."""
        sending = asyncio.create_task(self._try(send))
        await asyncio.wait([sending], timeout=random.uniform(0, self._took[what]))
        await self._server.kill()
        answer = await sending
        await self._server.start()
        if answer is None:
            self.lost += 1
            answer = await send()
        return answer

    async def _try(self, send: Send) -> httpx.Response | None:
        try:
            return await send()
        except httpx.TransportError:
            return None


class Life:
    """One worktree, from its making to its restoring."""

    def __init__(self, house: RegisteredRepository, name: str) -> None:
        self._house = house
        self._name = name
        self._keys = {verb: {"Idempotency-Key": str(uuid.uuid4())} for verb in ("make", "restore")}
        self.path = house.repo.path.with_name("repo.worktrees") / name

    async def make(self) -> httpx.Response:
        body = {"branch": self._name}
        return await self._house.server.http.post(self._house.url, json=body, headers=self._keys["make"])

    async def remove(self) -> httpx.Response:
        url = f"{self._house.url}/{self._name}"
        return await self._house.server.http.delete(url, params={"force": "true"})

    async def restore(self) -> httpx.Response:
        url = f"{self._house.url}/{self._name}/restore"
        return await self._house.server.http.post(url, json={}, headers=self._keys["restore"])


@pytest.mark.timeout(600)
async def test_r24_a_worktree_is_made_removed_and_restored_once_while_the_server_is_killed(
    server: Server, workspace: Path, faults: int
) -> None:
    repo = Repo(workspace / "repo")
    repo.write(".worktreeinclude", ".env\n")
    repo.write(".env", "secret")
    house = await RegisteredRepository.register(server, repo)
    await house.set(setup=SETUP)
    killer = Killer(server)
    first = Life(house, "first")
    for what in ("make", "remove", "restore"):
        await killer.measure(what, getattr(first, what))
    lives = [Life(house, f"topic-{number}") for number in range(faults // 5)]
    for life in lives:
        made = await killer.insist("make", life.make)
        assert made.status_code == 201, made.text
        assert made.json()["path"] == str(life.path)
        assert (life.path / "setup.log").read_text() == "ran\ndone\n"
        assert (life.path / ".env").read_text() == "secret"
        before = directory_contents(life.path)
        removed = await killer.insist("remove", life.remove)
        assert removed.status_code in (200, 404), removed.text  # 404: the first server had done it
        assert not life.path.exists()
        restored = await killer.insist("restore", life.restore)
        assert restored.status_code == 200, restored.text
        assert directory_contents(life.path) == before
    assert killer.lost, "no kill hit: the test shows nothing"
    await check_nothing_is_left(house, [first, *lives])


async def check_nothing_is_left(house: RegisteredRepository, lives: list[Life]) -> None:
    names = {"main", *(life.path.name for life in lives)}
    assert {each["name"] for each in await house.list()} == names
    assert {each["branch"] for each in await house.list()} == names
    refs = house.repo.git("for-each-ref", "--format=%(refname)").split()
    assert set(refs) == {f"refs/heads/{name}" for name in names}
    assert {path.name for path in lives[0].path.parent.iterdir()} == names - {"main"}
    assert list((house.server.home / "trash").iterdir()) == []
    notes = (house.server.home / "worktrees").iterdir()  # one may stay for a day when its request is answered
    assert all(json.loads(note.read_text())["done"] for note in notes)
