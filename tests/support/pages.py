"""Actions of a user in the page: logging in, and using a terminal."""

import json
import re
from typing import Any

from playwright.async_api import Browser, BrowserContext, Locator, Page, WebSocket, expect

from support.page_errors import watch_errors
from support.server import Server

# Violations of the Content-Security-Policy that the browser reports.
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


async def log_in(profile: BrowserContext, server: Server) -> str:
    """Store the cookie and the secret in a profile, as the login page does (tests/ui/test_login.py).

    Return the secret.
    """
    code = (await login_url(server)).partition("#code=")[2]
    answer = await profile.request.post(f"{server.url}/api/login", data={"code": code})
    assert answer.ok, await answer.text()
    secret: str = (await answer.json())["secret"]
    state = await profile.storage_state()
    state["origins"] = [{"origin": server.url, "localStorage": [{"name": "bullpen.secret", "value": secret}]}]
    await profile.set_storage_state(state)
    return secret


async def restore_login(page: Page, secret: str) -> None:
    """Remove everything that pages of the profile of this page have stored, and store its login again."""
    await page.evaluate(
        "(secret) => { localStorage.clear(); localStorage.setItem('bullpen.secret', secret) }", secret
    )


class TerminalPage:
    """A page that shows a terminal, and the messages that it sent to the server."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.sent_messages: list[dict[str, Any]] = []
        page.on("websocket", self._watch_socket)

    @classmethod
    async def new(cls, device: BrowserContext, server: Server) -> "TerminalPage":
        """Start a terminal with the button, and set a short prompt."""
        this = cls(await device.new_page())
        await this.page.goto(server.url)
        await this.page.get_by_role("button", name="New terminal").click()
        await this.run("PS1='> '")
        return this

    @classmethod
    async def at(cls, device: BrowserContext, url: str) -> "TerminalPage":
        """Open a terminal by its URL in a new page."""
        this = cls(await device.new_page())
        await this.page.goto(url)
        await this.rows.wait_for()
        return this

    @property
    def rows(self) -> Locator:
        return self.page.locator(".xterm-rows")

    @property
    def typed_text(self) -> str:
        return "".join(message["data"] for message in self.sent_messages if message["type"] == "input")

    async def run(self, command: str) -> None:
        """Type a command line and press Enter."""
        await self.rows.wait_for()
        await self.page.locator(".xterm-helper-textarea").focus()
        await self.page.keyboard.insert_text(command)
        await self.page.keyboard.press("Enter")

    async def wait_for_text(self, text: str) -> None:
        await expect(self.rows).to_contain_text(text)

    async def wait_for_prompt(self) -> None:
        """Wait until the screen ends with the prompt of the shell."""
        await expect(self.rows).to_contain_text(re.compile(r">\s*$"))

    async def lines(self) -> list[str]:
        """Return the rows of the screen as text."""
        texts = await self.rows.locator("> div").all_inner_texts()
        return [text.replace("\xa0", " ").rstrip() for text in texts]

    def _watch_socket(self, socket: WebSocket) -> None:
        if "/worker/" in socket.url:
            socket.on("framesent", self._add_message)

    def _add_message(self, frame: str | bytes) -> None:
        self.sent_messages.append(json.loads(frame))
