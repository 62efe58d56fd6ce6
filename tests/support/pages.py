"""What a person does with the page, and what they see there."""

import json
import re
from typing import Any

from playwright.async_api import Browser, BrowserContext, Locator, Page, WebSocket, expect

from support.page_errors import watch_errors
from support.server import Server

# Violations of the policy as the browser itself reports them.
WATCH_POLICY = """
    window.violations = []
    document.addEventListener('securitypolicyviolation', (event) =>
      window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`))
"""


async def new_profile(browser: Browser, width: int = 1100, height: int = 700) -> BrowserContext:
    """Create a browser profile that records policy violations and uncaught errors."""
    profile = await browser.new_context(viewport={"width": width, "height": height})
    watch_errors(profile)
    await profile.add_init_script(WATCH_POLICY)
    return profile


async def login_url(server: Server) -> str:
    answer = await server.call("POST", "/api/login-codes", 201)
    url: str = answer["url"]
    return url


async def log_in(profile: BrowserContext, server: Server) -> None:
    """Leaves in a profile what the page's own login leaves (tests/ui/test_login.py), without its page."""
    code = (await login_url(server)).partition("#code=")[2]
    answer = await profile.request.post(f"{server.url}/api/login", data={"code": code})
    assert answer.ok, await answer.text()
    secret = (await answer.json())["secret"]
    state = await profile.storage_state()
    state["origins"] = [{"origin": server.url, "localStorage": [{"name": "bullpen.secret", "value": secret}]}]
    await profile.set_storage_state(state)


class TerminalPage:
    """A page that shows a terminal, and what it has said to the server."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[dict[str, Any]] = []
        page.on("websocket", self._listen)

    @classmethod
    async def new(cls, device: BrowserContext, server: Server) -> "TerminalPage":
        """A new terminal by the button, with a prompt of its own."""
        this = cls(await device.new_page())
        await this.page.goto(server.url)
        await this.page.get_by_role("button", name="New terminal").click()
        await this.run("PS1='> '")
        return this

    @classmethod
    async def at(cls, device: BrowserContext, url: str) -> "TerminalPage":
        """The same terminal in another page."""
        this = cls(await device.new_page())
        await this.page.goto(url)
        await this.rows.wait_for()
        return this

    @property
    def rows(self) -> Locator:
        return self.page.locator(".xterm-rows")

    @property
    def typed(self) -> str:
        return "".join(message["data"] for message in self.said if message["type"] == "input")

    async def run(self, command: str) -> None:
        """Types a command line."""
        await self.rows.wait_for()
        await self.page.locator(".xterm-helper-textarea").focus()
        await self.page.keyboard.insert_text(command)
        await self.page.keyboard.press("Enter")

    async def sees(self, text: str) -> None:
        await expect(self.rows).to_contain_text(text)

    async def rests(self) -> None:
        """Waits until the shell shows its prompt again, as the last thing on the screen."""
        await expect(self.rows).to_contain_text(re.compile(r">\s*$"))

    async def lines(self) -> list[str]:
        """The screen's rows as text."""
        texts = await self.rows.locator("> div").all_inner_texts()
        return [text.replace("\xa0", " ").rstrip() for text in texts]

    def _listen(self, socket: WebSocket) -> None:
        if "/worker/" in socket.url:
            socket.on("framesent", self._hear)

    def _hear(self, frame: str | bytes) -> None:
        self.said.append(json.loads(frame))
