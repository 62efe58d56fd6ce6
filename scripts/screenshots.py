"""Pictures of every main view, light and dark, desktop and phone: scripts/screenshots.py [name …]

A real server with a few sessions of the demo agent, in a real Chromium, into docs/screenshots.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, async_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.pages import login_url  # noqa: E402
from support.server import Server  # noqa: E402

INTO = ROOT / "docs/screenshots"
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 780}

Shot = Callable[[Page, Server], Awaitable[None]]


class House:
    """A server with something in it, as a person would have after a morning's work."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.asking = ""
        self.terminal = ""

    async def furnish(self) -> None:
        for name in ("atlas", "website"):
            repository(self.server.workspace / name)
        atlas = await self._repository("atlas")
        website = await self._repository("website")
        await self._talk(website, "Write the release notes", "plan, think and help")
        await self._talk(atlas, "Speed up the tile cache", "plan, think and help")
        self.asking = await self._talk(
            atlas, "Fix the flaky import test", "create a file notes.txt with some text", settle="asking"
        )
        quick = await self.server.new_session(title="Shell on this machine")
        terminal = await self.server.new_terminal(quick["id"])
        self.terminal = f"{quick['id']}/{terminal['id']}"

    async def _repository(self, name: str) -> str:
        body = {"path": str(self.server.workspace / name)}
        answer = await self.server.call("POST", "/api/repositories", 201, json=body)
        id: str = answer["id"]
        return id

    async def _talk(self, repository_id: str, title: str, prompt: str, settle: str = "idle") -> str:
        body = {"repoId": repository_id, "agentId": "demo", "title": title}
        session = await self.server.call("POST", "/api/sessions", 201, json=body)
        path = f"/api/sessions/{session['id']}"
        await self.server.call("POST", f"{path}/prompt", 202, json={"text": prompt})
        await self._until(path, settle)
        id: str = session["id"]
        return id

    async def _until(self, path: str, activity: str) -> None:
        async with asyncio.timeout(60):
            while True:
                session = await self.server.call("GET", path)
                events = await self.server.call("GET", f"{path}/events?types=turn_end,permission")
                if session["workers"][0]["activity"] == activity and events["events"]:
                    return
                await asyncio.sleep(0.1)


def repository(directory: Path) -> None:
    directory.mkdir()
    (directory / "README.md").write_text(f"# {directory.name}\n")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "Begin"]):
        name = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", *name, *command], cwd=directory, check=True)


async def show(page: Page, server: Server, hash: str) -> None:
    await page.goto(f"{server.url}/{hash}")
    await page.get_by_text("Connected").first.wait_for()
    await page.wait_for_load_state("networkidle")


def views(house: House) -> dict[str, Shot]:
    async def home(page: Page, server: Server) -> None:
        await show(page, server, "#/")

    async def start(page: Page, server: Server) -> None:
        await show(page, server, "#/new")
        await page.get_by_role("radio", name="atlas").first.click()
        await page.get_by_label("Prompt").first.fill(
            "Make the tile cache twice as fast, and show me how you measured it"
        )

    async def permission(page: Page, server: Server) -> None:
        await show(page, server, f"#/session/{house.asking}")
        await page.get_by_role("log").wait_for()

    async def panel(page: Page, server: Server) -> None:
        sessions = (await server.call("GET", "/api/sessions"))["sessions"]
        planned = next(each["id"] for each in sessions if each["title"] == "Speed up the tile cache")
        await show(page, server, f"#/session/{planned}")
        await page.get_by_role("log").wait_for()
        await page.keyboard.press("Control+Shift+B")
        await page.get_by_role("tab", name="Details").wait_for()

    async def terminal(page: Page, server: Server) -> None:
        await show(page, server, f"#/session/{house.terminal}")
        await page.locator(".xterm-rows").wait_for()
        await page.keyboard.type("ls --color=always -la && git -C atlas log --oneline\n")
        await page.locator(".xterm-rows").get_by_text("Begin").wait_for()

    async def split(page: Page, server: Server) -> None:
        session_id = house.asking
        await show(page, server, f"#/session/{session_id}")
        await page.get_by_role("log").wait_for()
        await page.keyboard.press("Control+D")
        await page.get_by_role("button", name="New agent or terminal").click()
        await page.get_by_role("menuitem", name="New terminal").click()
        await page.locator(".xterm-rows").wait_for()

    async def palette(page: Page, server: Server) -> None:
        await show(page, server, "#/")
        await page.keyboard.press("Control+K")
        await page.get_by_role("combobox").fill("se")

    async def help(page: Page, server: Server) -> None:
        await show(page, server, "#/")
        await page.keyboard.press("Control+/")
        await page.get_by_role("dialog").wait_for()

    def settings(section: str) -> Shot:
        async def shot(page: Page, server: Server) -> None:
            await show(page, server, f"#/settings/{section}")

        return shot

    return {
        "home": home,
        "start": start,
        "chat": permission,
        "panel": panel,
        "terminal": terminal,
        "split": split,
        "palette": palette,
        "help": help,
        "settings": settings("appearance"),
        "settings-keys": settings("keys"),
        "settings-agents": settings("agents"),
        "settings-devices": settings("devices"),
    }


ON_PHONE = ("home", "start", "chat", "terminal", "settings")


async def profile(browser: Browser, server: Server, theme: Any, size: Any) -> BrowserContext:
    phone = size == PHONE
    context = await browser.new_context(viewport=size, color_scheme=theme, has_touch=phone, is_mobile=phone)
    page = await context.new_page()
    await page.goto(await login_url(server))
    await page.get_by_role("button", name="New session").first.wait_for()
    await page.close()
    return context


async def take(browser: Browser, server: Server, shots: dict[str, Shot], theme: str, size: Any) -> None:
    context = await profile(browser, server, theme, size)
    kind = "phone" if size == PHONE else "desktop"
    for name, shot in shots.items():
        page = await context.new_page()
        await shot(page, server)
        await page.wait_for_timeout(400)  # a picture, not a test: let cursors and fades come to rest
        await page.screenshot(path=INTO / f"{name}-{kind}-{theme}.png", animations="disabled")
        await page.close()
    await context.close()


async def first_run(browser: Browser, server: Server) -> None:
    for theme in ("light", "dark"):
        context = await profile(browser, server, theme, DESKTOP)
        page = await context.new_page()
        await show(page, server, "#/")
        await page.screenshot(path=INTO / f"first-run-desktop-{theme}.png", animations="disabled")
        await context.close()


async def main() -> None:
    INTO.mkdir(exist_ok=True)
    chromium = shutil.which("chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        workspace = Path(directory) / "ada"
        workspace.mkdir()
        server = Server(Path(directory) / "home", workspace, {"AGENT_MAX_SESSIONS": "20", "PS1": "$ "})
        await server.start()
        try:
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                await first_run(browser, server)
                house = House(server)
                await house.furnish()
                wanted = {
                    name: shot
                    for name, shot in views(house).items()
                    if name in sys.argv[1:] or not sys.argv[1:]
                }
                for theme in ("light", "dark"):
                    await take(browser, server, wanted, theme, DESKTOP)
                    phone = {name: shot for name, shot in wanted.items() if name in ON_PHONE}
                    await take(browser, server, phone, theme, PHONE)
                await browser.close()
        finally:
            await server.close()


if __name__ == "__main__":
    asyncio.run(main())
