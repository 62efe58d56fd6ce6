"""Take pictures of every main view, light and dark, desktop and phone: scripts/screenshots.py [name …]

It uses a real server with a temporary home and Chromium, and writes to docs/screenshots. With names, only
these views are taken.
"""

import asyncio
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Browser, Page

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from pictures.example_server import ExampleServer  # noqa: E402

from support.browser import chromium  # noqa: E402
from support.pages import login_url  # noqa: E402

OUTPUT = ROOT / "docs/screenshots"
SIZES: dict[str, Any] = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
Shot = Callable[[Page], Awaitable[None]]

AT_THE_SHELL = "; ".join(
    [
        "PS1='ada@atlas$ '",
        "clear",
        "git log --oneline --graph --all --color",
        "git diff --stat --color",
        "ls --color atlas",
    ]
)


class Views:
    """Navigation to each view: each method opens the view of its name."""

    def __init__(self, example: ExampleServer) -> None:
        self._example = example

    async def home(self, page: Page) -> None:
        await self._show(page, "")
        await page.get_by_role("link", name="Fix the flaky import test").first.wait_for()
        # on a phone it is on another page
        await page.get_by_text("Waiting for you").wait_for(state="attached")

    async def start(self, page: Page) -> None:
        await self._show(page, "new")
        await page.get_by_role("radio", name="atlas").first.click()
        await page.get_by_label("Prompt").first.fill(
            "Draw rivers before borders, and add a picture to the tests"
        )

    async def chat(self, page: Page) -> None:
        await self._show(page, f"session/{self._example.asking}")
        await page.get_by_role("tab", name="Scout").click()
        await page.get_by_role("region", name="Permission").wait_for()

    async def answer(self, page: Page) -> None:
        await self._show(page, f"session/{self._example.done}")
        await page.locator("[role=log] pre .line, [role=log] pre span").first.wait_for()

    async def terminal(self, page: Page) -> None:
        await self._show(page, f"session/{self._example.terminal}")
        rows = page.locator(".xterm-rows")
        await rows.get_by_text(re.compile(r"[$#]")).first.wait_for()
        if not await rows.get_by_text("tiles.py").count():
            await page.locator(".xterm-helper-textarea").focus()
            await page.keyboard.insert_text(AT_THE_SHELL)
            await page.keyboard.press("Enter")
        await rows.get_by_text("tiles.py").first.wait_for()

    async def diff(self, page: Page) -> None:
        await self._show(page, f"session/{self._example.diff}")
        await page.get_by_text("from pathlib import Path").first.wait_for()

    async def document(self, page: Page) -> None:
        await self._show(page, f"session/{self._example.document}")
        await page.get_by_role("heading", name="The tile cache").wait_for()

    async def replay(self, page: Page) -> None:
        await self._show(page, f"replay/{self._example.asking}")
        await page.get_by_role("slider", name="Time").press("End")
        if await page.get_by_role("tab", name="Terminals").count():  # a phone shows one panel at a time
            await page.get_by_role("tab", name="Terminals").click()
        await page.locator(".xterm-rows").get_by_text("tiles.py").first.wait_for()

    async def inbox(self, page: Page) -> None:
        await self._show(page, "inbox")
        await page.locator("main").get_by_text("Fix the flaky import test").first.wait_for()

    async def search(self, page: Page) -> None:
        await self._show(page, "search/cache")
        await page.locator("main").get_by_text("Fix the flaky import test").first.wait_for()

    async def usage(self, page: Page) -> None:
        await self._show(page, "usage")
        await page.locator("main").get_by_role("heading").first.wait_for()

    async def panel(self, page: Page) -> None:
        await self.chat(page)
        await page.keyboard.press("Control+Shift+B")
        await page.get_by_role("button", name="Show all").wait_for()

    async def details(self, page: Page) -> None:
        await self.answer(page)
        if await page.get_by_role("button", name="Show the panel").count():
            await page.keyboard.press("Control+Shift+B")
        await page.get_by_role("tablist", name="Panels").get_by_role("tab", name="Details").click()
        await page.get_by_text("Enforced by").wait_for()
        await page.get_by_role("heading", name="Sandbox of Scout").scroll_into_view_if_needed()

    async def preview(self, page: Page) -> None:
        await self._show(page, f"session/{self._example.web}")
        await page.get_by_role("button", name=re.compile("the panel$")).wait_for()
        if await page.get_by_role("button", name="Show the panel").count():
            await page.keyboard.press("Control+Shift+B")
        await page.get_by_role("tablist", name="Panels").get_by_role("tab", name="Preview").click()
        await page.frame_locator("iframe").get_by_role("heading", name="Atlas").wait_for()

    async def palette(self, page: Page) -> None:
        await self._show(page, "")
        await page.keyboard.press("Control+K")
        await page.get_by_role("combobox", name="Command").fill("se")

    async def help(self, page: Page) -> None:
        await self._show(page, "")
        await page.keyboard.press("Control+/")
        await page.get_by_role("dialog").wait_for()

    async def settings(self, page: Page) -> None:
        await self._settings(page, "Appearance")

    async def keys(self, page: Page) -> None:
        await self._settings(page, "Keys")

    async def sandbox(self, page: Page) -> None:
        await self._settings(page, "Sandbox")
        await page.get_by_role("heading", name="Allowed").wait_for()

    async def devices(self, page: Page) -> None:
        await self._settings(page, "Devices")

    async def overview(self, page: Page) -> None:
        await self.chat(page)
        await page.get_by_role("button", name="Session menu").click()
        await page.get_by_role("menuitem", name="Split right").click()
        await page.get_by_text("from pathlib import Path").first.wait_for()

    async def _settings(self, page: Page, section: str) -> None:
        await self._show(page, f"settings/{section.lower()}")
        await page.get_by_role("heading", name=section).first.wait_for()

    async def _show(self, page: Page, route: str) -> None:
        # Escape must close a dialog of the page and not reach a shell that has the focus.
        await page.evaluate("document.activeElement?.blur()")
        await page.keyboard.press("Escape")
        await page.goto(f"{self._example.server.url}/#/{route}")


PHONE = [
    "home",
    "start",
    "chat",
    "answer",
    "terminal",
    "diff",
    "document",
    "replay",
    "inbox",
    "search",
    "usage",
    "settings",
    "sandbox",
]
DESKTOP = [
    *PHONE,
    "palette",
    "help",
    "keys",
    "devices",
    "overview",
    "panel",
    "details",
    "preview",
]  # the last four views stay open


async def take(page: Page, name: str, size: str, theme: Theme) -> None:
    await page.wait_for_timeout(400)  # until cursors and fades have ended
    await page.screenshot(path=OUTPUT / f"{name}-{size}-{theme}.png", animations="disabled")


async def open_page(browser: Browser, example: ExampleServer, size: str, theme: Theme) -> Page:
    """Open a page in a new browser profile that is logged in."""
    phone = size == "phone"
    context = await browser.new_context(
        viewport=SIZES[size], color_scheme=theme, has_touch=phone, is_mobile=phone, reduced_motion="reduce"
    )
    page = await context.new_page()
    await page.goto(await login_url(example.server))
    await page.get_by_role("button", name="Connection: Connected").wait_for()
    return page


async def take_all(browser: Browser, example: ExampleServer, wanted: set[str]) -> None:
    pages = [
        (size, theme, await open_page(browser, example, size, theme)) for size in SIZES for theme in THEMES
    ]
    for size, theme, page in pages:
        await page.get_by_role("heading", name="Welcome to Bullpen").wait_for()
        await take(page, "first-run", size, theme)
    await example.create_sessions()
    views = Views(example)
    for size, theme, page in pages:
        await page.reload()
        for name in DESKTOP if size == "desktop" else PHONE:
            if not wanted or name in wanted:
                shot: Shot = getattr(views, name)
                await shot(page)
                await take(page, name, size, theme)


async def main() -> None:
    OUTPUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pictures-", ignore_cleanup_errors=True) as directory:
        example = ExampleServer(Path(directory))
        await example.server.start()
        try:
            async with chromium() as browser:
                await take_all(browser, example, set(sys.argv[1:]))
        finally:
            await example.server.close()


if __name__ == "__main__":
    asyncio.run(main())
