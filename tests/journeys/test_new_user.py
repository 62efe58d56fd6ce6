"""A new user installs a wheel, tries Bullpen by command and browser, and upgrades while an agent works."""

import asyncio
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from support.browser import chromium
from support.server import end_processes_of
from support.wheels import VirtualEnvironment, build, build_newer

NEWER = "9.9.9"
COUNT = "run i=0; until [ -e enough ]; do i=$((i+1)); echo line $i; sleep 0.1; done"
DEADLINE = 120.0

pytestmark = pytest.mark.xdist_group("wheel")


class NewUser:
    """A user with an empty home directory and an installed environment."""

    def __init__(self, home: Path, environment: VirtualEnvironment) -> None:
        self.data = home / ".local" / "share" / "bullpen"
        self.environment = environment
        self._program = str(environment.bin / "bullpen")
        self._process_options: dict[str, Any] = {
            "cwd": home,
            "env": {
                "HOME": str(home),
                "PATH": f"{environment.bin}:/usr/bin:/bin",
                "BULLPEN_PORT": "0",
                "BULLPEN_SANDBOX_TOOLCHAINS": os.environ[
                    "BULLPEN_SANDBOX_TOOLCHAINS"
                ],  # links in the environment lead there
            },
            "text": True,
        }

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Run `bullpen serve` during the context. Return the printed address."""
        command = [self._program, "serve", "--no-open"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, **self._process_options) as process:
            try:
                assert process.stdout is not None
                line = await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), DEADLINE)
                found = re.search(r"http://\S+#code=\S+", line)
                assert found, line
                yield found[0]
            finally:
                process.terminate()

    async def bullpen(self, *arguments: str) -> str:
        done = await self._run(*arguments)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    async def until_success(self, *arguments: str) -> None:
        """Repeat a command until it succeeds."""
        async with asyncio.timeout(DEADLINE):
            while (await self._run(*arguments)).returncode:
                await asyncio.sleep(0.05)

    async def worker(self, session: str, type: str) -> dict[str, Any]:
        """Wait until the session has a worker of this type, and return it."""
        async with asyncio.timeout(DEADLINE):
            while True:
                workers = json.loads(await self.bullpen("show", session, "--json"))["workers"]
                worker: dict[str, Any]
                for worker in workers:
                    if worker["type"] == type:
                        return worker
                await asyncio.sleep(0.05)

    async def printed_numbers(self, session: str, at_least: int) -> list[int]:
        """Wait until the program in the terminal has printed so many numbers, and return them."""
        worker = await self.worker(session, "terminal")
        async with asyncio.timeout(DEADLINE):
            while True:
                output = await self.bullpen("logs", f"{session}/{worker['role']}", "--raw")
                numbers = [int(number) for number in re.findall(r"line (\d+)\s", output)]
                if len(numbers) >= at_least:
                    return numbers
                await asyncio.sleep(0.05)

    async def _run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [self._program, *arguments]
        return await asyncio.to_thread(
            lambda: subprocess.run(command, capture_output=True, check=False, **self._process_options)
        )


@pytest.fixture
async def user(tmp_path: Path) -> AsyncIterator[NewUser]:
    environment = await asyncio.to_thread(VirtualEnvironment, tmp_path / "environment")
    home = tmp_path / "home"
    home.mkdir()
    user = NewUser(home, environment)
    yield user
    await asyncio.to_thread(end_processes_of, user.data)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_new_user_installs_tries_and_upgrades_while_an_agent_works(
    user: NewUser, tmp_path: Path
) -> None:
    wheel = await asyncio.to_thread(build, "wheel", tmp_path / "wheel")
    newer = await asyncio.to_thread(build_newer, NEWER, tmp_path / "newer")
    await asyncio.to_thread(user.environment.install, wheel)
    async with user.serving() as address:
        await user.until_success("doctor")
        await _try_in_a_browser(address)
        assert "plan" in await user.bullpen("run", "help", "--agent", "demo", "--wait")
        await user.bullpen("run", COUNT, "--agent", "demo", "--name", "counting")
        await user.until_success("approve", "counting")
        await user.printed_numbers("counting", at_least=3)
        agent, program = await user.worker("counting", "agent"), await user.worker("counting", "terminal")
    await asyncio.to_thread(user.environment.install, newer)
    assert await user.bullpen("--version") == f"bullpen {NEWER}\n"
    async with user.serving():
        await user.until_success("doctor")
        before = await user.printed_numbers("counting", at_least=3)
        await user.printed_numbers("counting", at_least=len(before) + 3)
        (Path(agent["workspace"]) / "enough").touch()
        await user.bullpen("wait", "counting", "--timeout", str(int(DEADLINE)))
        numbers = await user.printed_numbers("counting", at_least=len(before) + 3)
        assert numbers == list(range(1, len(numbers) + 1))
        assert (await user.worker("counting", "agent"))["pid"] == agent["pid"]
        assert (await user.worker("counting", "terminal"))["id"] == program["id"]
        events = await user.bullpen("logs", "counting", "--events")
    assert "worker exited  exitCode=0" in events
    assert "turn end  stopReason=end_turn" in events


async def _try_in_a_browser(address: str) -> None:
    async with chromium() as browser:
        page = await browser.new_page()
        page.set_default_timeout(DEADLINE * 1000)
        await page.goto(address)
        await page.get_by_role("button", name="Try the demo agent").click()
        await expect(page.get_by_role("log")).to_contain_text(
            "This is how an agent works here.", timeout=DEADLINE * 1000
        )
