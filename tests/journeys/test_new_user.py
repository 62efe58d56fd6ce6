"""An empty home and only Python: installed from a wheel, tried by command and browser, upgraded at work."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import async_playwright, expect

from support.server import end_processes_of
from support.wheels import VirtualEnvironment, build, build_newer

NEWER = "9.9.9"
LINES = 120
COUNT = f"run i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo line $i; sleep 0.1; done"
DEADLINE = 120.0

pytestmark = pytest.mark.xdist_group("wheel")


class NewUser:
    """Somebody with a home in which there is nothing yet."""

    def __init__(self, home: Path, environment: VirtualEnvironment) -> None:
        self.data = home / ".local" / "share" / "bullpen"
        self.environment = environment
        self._program = str(environment.bin / "bullpen")
        self._given: dict[str, Any] = {
            "cwd": home,
            "env": {"HOME": str(home), "PATH": f"{environment.bin}:/usr/bin:/bin", "BULLPEN_PORT": "0"},
            "text": True,
        }

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """`bullpen serve`, until it is stopped; the address it prints."""
        command = [self._program, "serve", "--no-open"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, **self._given) as process:
            try:
                assert process.stdout is not None
                said = await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), DEADLINE)
                found = re.search(r"http://\S+#code=\S+", said)
                assert found, said
                yield found[0]
            finally:
                process.terminate()

    async def bullpen(self, *words: str) -> str:
        done = await self._run(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    async def until_well(self, *words: str) -> None:
        """Repeats a command until there is what it wants."""
        async with asyncio.timeout(DEADLINE):
            while (await self._run(*words)).returncode:
                await asyncio.sleep(0.05)

    async def worker(self, session: str, type: str) -> dict[str, Any]:
        """Waits until there is one of that type."""
        async with asyncio.timeout(DEADLINE):
            while True:
                workers = json.loads(await self.bullpen("show", session, "--json"))["workers"]
                worker: dict[str, Any]
                for worker in workers:
                    if worker["type"] == type:
                        return worker
                await asyncio.sleep(0.05)

    async def printed(self, session: str, at_least: int) -> list[int]:
        """Waits until the program in its terminal has counted that far; the numbers it has said."""
        worker = await self.worker(session, "terminal")
        async with asyncio.timeout(DEADLINE):
            while True:
                said = await self.bullpen("logs", f"{session}/{worker['role']}", "--raw")
                numbers = [int(number) for number in re.findall(r"line (\d+)\s", said)]
                if len(numbers) >= at_least:
                    return numbers
                await asyncio.sleep(0.05)

    async def _run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [self._program, *words]
        return await asyncio.to_thread(
            lambda: subprocess.run(command, capture_output=True, check=False, **self._given)
        )


@pytest.fixture
async def user(tmp_path: Path) -> AsyncIterator[NewUser]:
    environment = await asyncio.to_thread(VirtualEnvironment, tmp_path / "environment")
    home = tmp_path / "home"
    home.mkdir()
    user = NewUser(home, environment)
    yield user
    await asyncio.to_thread(end_processes_of, user.data)


@pytest.mark.timeout(600)
async def test_a_new_user_installs_tries_and_upgrades_with_an_agent_at_work(
    user: NewUser, tmp_path: Path
) -> None:
    wheel = await asyncio.to_thread(build, "wheel", tmp_path / "wheel")
    newer = await asyncio.to_thread(build_newer, NEWER, tmp_path / "newer")
    await asyncio.to_thread(user.environment.install, wheel)
    async with user.serving() as address:
        await user.until_well("doctor")
        await _try_in_a_browser(address)
        assert "plan" in await user.bullpen("run", "help", "--agent", "demo", "--wait")
        await user.bullpen("run", COUNT, "--agent", "demo", "--name", "counting")
        await user.until_well("approve", "counting")
        await user.printed("counting", at_least=3)
        agent, program = await user.worker("counting", "agent"), await user.worker("counting", "terminal")
    await asyncio.to_thread(user.environment.install, newer)
    assert await user.bullpen("--version") == f"bullpen {NEWER}\n"
    async with user.serving():
        await user.until_well("doctor")
        await user.bullpen("wait", "counting", "--timeout", str(int(DEADLINE)))
        assert await user.printed("counting", at_least=LINES) == list(range(1, LINES + 1))
        assert (await user.worker("counting", "agent"))["pid"] == agent["pid"]
        assert (await user.worker("counting", "terminal"))["id"] == program["id"]
        events = await user.bullpen("logs", "counting")
    assert "worker exited  exitCode=0" in events
    assert "turn end  stopReason=end_turn" in events


async def _try_in_a_browser(address: str) -> None:
    async with async_playwright() as playwright:
        path = shutil.which("chromium")
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = await browser.new_page()
        page.set_default_timeout(DEADLINE * 1000)
        await page.goto(address)
        await page.get_by_role("button", name="Try the demo agent").click()
        await expect(page.get_by_role("log")).to_contain_text("The plan is done.", timeout=DEADLINE * 1000)
        await browser.close()
