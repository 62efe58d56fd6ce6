"""A server that the tests of one process use one after another."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from support.internal_errors import find_internal_error
from support.intervals import marked
from support.server import Server, end_processes_of

# A test leaves no more running agents than this; the limit itself is tested with other servers.
ENVIRONMENT = {"AGENT_MAX_SESSIONS": "50"}
# The path, the list and the key of records that are removed, unless they are built in.
REMOVED = (
    ("/api/repositories", "repositories", "id"),
    ("/api/rules", "rules", "name"),
    ("/api/sandbox/grants", "grants", "id"),
    ("/api/agents", "agents", "id"),
    ("/api/tokens", "tokens", "id"),
)


class SharedServer(Server):
    """A server that has nothing of earlier tests, except the login that a browser profile keeps."""

    def __init__(self, directory: Path) -> None:
        workspace = directory / "workspace"
        workspace.mkdir()
        super().__init__(directory / "home", workspace, dict(ENVIRONMENT))
        self._checked_output = 0
        self._kept: set[str] = set()  # ids of tokens

    @asynccontextmanager
    async def lent(self) -> AsyncIterator["SharedServer"]:
        """Let a test use the server: start it before if necessary, and clean it afterwards."""
        self.http = self.new_client()  # connections belong to the event loop of one test
        if self.process is None:
            await self.start()
        yield self
        if self._env != ENVIRONMENT:
            self._env = dict(ENVIRONMENT)
            await self.kill()
        try:
            if self.has_ended():
                await self.start()
            await self._clean()
        except BaseException:
            await self._remove()  # only this test fails
            raise
        await self.http.aclose()
        self._check_log()

    async def keep_logins(self) -> None:
        """Do not remove the tokens and devices that there are now."""
        self._kept |= {each["id"] for each in (await self.call("GET", "/api/tokens"))["tokens"]}

    async def _clean(self) -> None:
        """Remove everything that the test has created."""
        while sessions := (await self.call("GET", "/api/sessions?limit=1000"))["sessions"]:
            await self._delete("/api/sessions", [f"{each['id']}?purge=true" for each in sessions])
        for path, name, key in REMOVED:
            records = (await self.call("GET", path))[name]
            added = [each[key] for each in records if each.get("added", True)]
            await self._delete(path, [quote(each, safe="") for each in added if each not in self._kept])
        for entry in (*self.workspace.iterdir(), *self.workspace.parent.iterdir()):
            if entry in (self.workspace, self.home, self.home.with_suffix(".out")):
                continue
            is_directory = entry.is_dir() and not entry.is_symlink()
            await asyncio.to_thread(shutil.rmtree if is_directory else Path.unlink, entry)

    async def _remove(self) -> None:
        """End the server and remove its data; the next test has a new one."""
        await self.kill()
        await asyncio.to_thread(end_processes_of, self.home)
        await asyncio.to_thread(shutil.rmtree, self.home)
        self.process = None

    def _check_log(self) -> None:
        """Fail if the server has logged a mistake since the last check that the test does not expect."""
        output = self.output()
        mistake = find_internal_error(output[self._checked_output :], self.home, self._expected_mistakes)
        self._checked_output = len(output)
        self._expected_mistakes = ()
        assert mistake is None, f"the server logged a mistake:\n{mistake}"

    async def _delete(self, path: str, names: list[str]) -> None:
        await asyncio.gather(*(self.call("DELETE", f"{path}/{name}") for name in names))


def shared_server(directory: Path) -> Iterator[SharedServer]:
    """Yield a server that starts when a test first uses it, and end it."""
    server = SharedServer(directory)
    yield server
    asyncio.run(server.close())


def has_own_server(request: pytest.FixtureRequest) -> bool:
    """Return whether a test has a new server, because it has the mark `own_server` or `intervals`."""
    return any(request.node.get_closest_marker(name) for name in ("own_server", "intervals"))


@asynccontextmanager
async def server_of_test(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    """Run the server of a test: that of the process, or a new one in the directory of the test."""
    if not has_own_server(request):
        shared: SharedServer = request.getfixturevalue("server_of_process")
        async with shared.lent():
            yield shared
        return
    workspace: Path = request.getfixturevalue("workspace")
    server = Server(tmp_path / "home", workspace, marked(request))
    await server.start()
    yield server
    await server.close()
