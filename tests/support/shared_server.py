"""A server that the tests of one process use one after another."""

import asyncio
import shutil
from pathlib import Path
from urllib.parse import quote

from support.internal_errors import find_internal_error
from support.server import Server

# A test leaves no more running agents than this; the limit itself is tested with other servers.
ENVIRONMENT = {"AGENT_MAX_SESSIONS": "50"}
# The path, the list and the key of records that are removed, unless they are built in or devices.
REMOVED = (
    ("/api/repositories", "repositories", "id"),
    ("/api/rules", "rules", "name"),
    ("/api/sandbox/grants", "grants", "id"),
    ("/api/agents", "agents", "id"),
    ("/api/tokens", "tokens", "id"),
)


class SharedServer(Server):
    """A running server that is reset before each test. Its devices stay, so that a profile logs in once."""

    def __init__(self, directory: Path) -> None:
        workspace = directory / "workspace"
        workspace.mkdir()
        super().__init__(directory / "home", workspace, dict(ENVIRONMENT))
        self._checked_output = 0

    async def reset(self) -> None:
        """Start the server if a test has killed it, and remove everything that tests have created."""
        if self.process is None or self.process.poll() is not None:
            await self.start()
        while sessions := (await self.call("GET", "/api/sessions?limit=1000"))["sessions"]:
            await self._delete("/api/sessions", [f"{each['id']}?purge=true" for each in sessions])
        for path, name, key in REMOVED:
            records = (await self.call("GET", path))[name]
            added = [each for each in records if each.get("added", True) and each.get("kind") != "device"]
            await self._delete(path, [quote(each[key], safe="") for each in added])
        for entry in (*self.workspace.iterdir(), *self.workspace.parent.iterdir()):
            if entry in (self.workspace, self.home, self.home.with_suffix(".out")):
                continue
            await asyncio.to_thread(shutil.rmtree if entry.is_dir() else Path.unlink, entry)

    def check_log(self) -> None:
        """Fail if the server has logged a mistake since the last check that the test does not expect."""
        output = self.output()
        mistake = find_internal_error(output[self._checked_output :], self.home, self._expected_mistakes)
        self._checked_output = len(output)
        self._expected_mistakes = ()
        assert mistake is None, f"the server logged a mistake:\n{mistake}"

    async def _delete(self, path: str, names: list[str]) -> None:
        await asyncio.gather(*(self.call("DELETE", f"{path}/{name}") for name in names))
