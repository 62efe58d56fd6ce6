"""The preview: the page of a session's own program beside it, and what that page cannot do."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, FrameLocator, Locator, Page, expect

from support.listening_programs import type_line, until_ports
from support.pages import login_url, new_profile
from support.ports import free_port
from support.server import SECONDS, Server

WEB = """
import http.server, json, sys

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open("requests.jsonl", "a") as file:
            print(json.dumps({"path": self.path, "headers": dict(self.headers)}), file=file)
        body = open("page.html", "rb").read()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", "theirs=1")
        self.end_headers()
        self.wfile.write(body)

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
PLAIN = (
    "<!doctype html><h1>Hello from the session</h1><script>document.body.append(location.pathname)</script>"
)
# Each way to what is ours, and what came of it.
HOSTILE = """<!doctype html><button onclick="go()">Go</button><pre></pre><script>
const ours = 'OURS', tries = {
  top: () => (top.location = ours + '/gone'),
  topByLink: () => open(ours + '/gone', '_top') ?? refused(),
  parent: () => parent.document.body.innerHTML,
  storage: () => parent.localStorage.getItem('bullpen.secret'),
  frameElement: () => frameElement?.src ?? refused(),
  read: () => fetch(ours + '/api/sessions', { credentials: 'include' }),
  blind: () => fetch(ours + '/api/sessions', { credentials: 'include', mode: 'no-cors' })
    .then((it) => it.text())
    .then((it) => it || refused()),
  other: () => fetch(ours.replace('127.0.0.1', 'localhost') + '/api/sessions', { credentials: 'include' }),
  socket: () => new Promise((opened, failed) => {
    const socket = new WebSocket(ours.replace('http', 'ws') + '/ws/dashboard')
    socket.onopen = opened
    socket.onerror = failed
  }),
}
function refused() { throw new Error('refused') }
async function go() {
  const outcomes = {}
  for (const [name, attempt] of Object.entries(tries))
    outcomes[name] = await Promise.resolve().then(attempt).then(() => 'reached', () => 'refused')
  document.querySelector('pre').textContent = JSON.stringify(outcomes)
}
parent.postMessage({ type: 'removed', sessionId: 'x' }, '*')
</script>"""


class PreviewPage:
    """A session with the preview beside it, and a program of it that notes what it is asked."""

    def __init__(self, page: Page, server: Server, worker: dict[str, Any]) -> None:
        self.page = page
        self.server = server
        self.worker = worker
        self.port = free_port()

    @classmethod
    async def open(cls, device: BrowserContext, server: Server, url: str | None = None) -> "PreviewPage":
        session = await server.new_session(title="Shop")
        this = cls(await device.new_page(), server, await server.new_terminal(session["id"]))
        await this.page.goto(f"{url or server.url}/#/session/{session['id']}")
        await this.page.get_by_role("button", name="Show the panel").click()
        await this.page.get_by_role("tablist", name="Panels").get_by_role("tab", name="Preview").click()
        return this

    @property
    def panel(self) -> Locator:
        return self.page.get_by_role("complementary", name="Preview")

    @property
    def frame(self) -> FrameLocator:
        return self.page.frame_locator("iframe")

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What the program was asked so far."""
        lines = (self.server.workspace / "requests.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    async def frame_at(self, url: str) -> None:
        """Waits until the frame is at an address."""
        async with asyncio.timeout(SECONDS):
            while [each.url for each in self.page.frames[1:]] != [url]:
                await asyncio.sleep(0.05)

    async def serve(self, html: str) -> None:
        """Starts the program in the session's terminal."""
        (self.server.workspace / "page.html").write_text(html)
        (self.server.workspace / "web.py").write_text(WEB)
        await type_line(self.server, self.worker, f"python3 web.py {self.port}")
        await until_ports(self.server, self.worker["sessionId"], {self.port})


@pytest_asyncio.fixture(loop_scope="session")
async def shop(device: BrowserContext, server: Server) -> PreviewPage:
    return await PreviewPage.open(device, server)


async def test_the_page_of_a_dev_server_is_seen_beside_its_session_until_it_ends(shop: PreviewPage) -> None:
    page, panel = shop.page, shop.panel
    await expect(panel).to_contain_text("Start your development server in a terminal of this session")
    await shop.serve(PLAIN)
    await expect(shop.frame.get_by_role("heading", name="Hello from the session")).to_be_visible()
    row = panel.get_by_role("list", name="Ports").get_by_role("listitem")
    await expect(row).to_contain_text(f"{shop.port}")
    await expect(row).to_contain_text("python3")
    await expect(row).to_contain_text(shop.worker["name"])
    link = row.get_by_role("link", name="in a new tab")
    assert await link.get_attribute("rel") == "noopener noreferrer"
    assert await link.get_attribute("href") == f"http://localhost:{shop.port}/"
    assert await page.evaluate("window.violations") == []

    await type_line(shop.server, shop.worker, "\x03")
    await expect(panel).to_contain_text("No open ports")
    await expect(page.locator("iframe")).to_have_count(0)


async def test_a_preview_goes_to_a_path_is_loaded_again_and_has_the_width_of_a_phone(
    shop: PreviewPage,
) -> None:
    await shop.serve(PLAIN)
    await shop.panel.get_by_label("Path").fill("cart?x=1")
    await shop.page.keyboard.press("Enter")
    await expect(shop.frame.locator("body")).to_contain_text("/cart")
    await expect(shop.panel.get_by_label("Path")).to_have_value("/cart?x=1")
    (shop.server.workspace / "page.html").write_text("<h1>Second</h1>")
    await shop.panel.get_by_role("button", name="Reload").click()
    await expect(shop.frame.get_by_role("heading", name="Second")).to_be_visible()
    assert [each["path"] for each in shop.requests if "favicon" not in each["path"]][-1] == "/cart?x=1"

    frame = shop.page.locator("iframe")
    await shop.panel.get_by_role("button", name="Phone").click()
    assert await frame.evaluate("frame => frame.clientWidth") == 390
    await shop.page.reload()  # what was chosen is kept (R10)
    await expect(shop.panel.get_by_label("Path")).to_have_value("/cart?x=1")
    await expect(shop.panel.get_by_role("button", name="Phone")).to_have_attribute("aria-pressed", "true")


async def test_s05_no_cookie_of_ours_reaches_a_preview(shop: PreviewPage, device: BrowserContext) -> None:
    """Not even of somebody who has logged in under the frame's name as well."""
    [ours] = await device.cookies()
    await device.add_cookies(
        [
            {
                "name": ours["name"],
                "value": "x",
                "domain": "localhost",
                "path": "/",
                "sameSite": ours["sameSite"],
            }
        ]
    )
    assert len(await device.cookies()) == 2
    await shop.serve(PLAIN)
    await expect(shop.frame.get_by_role("heading")).to_be_visible()
    await shop.panel.get_by_role("button", name="Reload").click()
    await expect(shop.frame.get_by_role("heading")).to_be_visible()
    assert len(shop.requests) >= 2
    for asked in shop.requests:
        assert ours["name"] not in asked["headers"].get("Cookie", ""), asked
        assert "Referer" not in asked["headers"]
        assert asked["headers"]["Host"] == f"localhost:{shop.port}"


async def test_s26_a_page_in_the_preview_reaches_nothing_of_ours(shop: PreviewPage) -> None:
    url = shop.page.url
    await shop.serve(HOSTILE.replace("OURS", shop.server.url))
    await shop.frame.get_by_role("button", name="Go").click()  # a person's click would let others go further
    outcomes = shop.frame.locator("pre")
    await expect(outcomes).to_contain_text("socket")
    told = json.loads(await outcomes.inner_text())
    assert told == dict.fromkeys(told, "refused")
    assert len(told) == 9
    assert shop.page.url == url
    await expect(shop.panel).to_be_visible()


async def test_it_is_to_be_seen_that_a_page_has_taken_the_keyboard(shop: PreviewPage) -> None:
    """Nothing a frame can be told keeps it from doing so, though our terminal may take it back once."""
    await shop.page.locator(".xterm-helper-textarea").focus()
    await shop.serve("<input id=it><script>setInterval(() => it.focus(), 100)</script>")
    frame = shop.page.locator("iframe")
    await expect(frame).to_be_focused()
    await expect(frame).to_have_css("outline-style", "solid")


async def test_s27_a_preview_cannot_become_our_own_page(shop: PreviewPage) -> None:
    for ours in (shop.server.url, shop.server.url.replace("127.0.0.1", "localhost")):
        (shop.server.workspace / "requests.jsonl").unlink(missing_ok=True)
        await shop.serve(f"<script>location = {ours!r} + '/'</script>")
        await shop.panel.get_by_role("button", name="Reload").click()
        await shop.frame_at("chrome-error://chromewebdata/")
        await expect(shop.frame.locator("#app")).to_have_count(0)
        await type_line(shop.server, shop.worker, "\x03")
        await until_ports(shop.server, shop.worker["sessionId"], set())


async def test_a_page_at_localhost_shows_the_preview_by_number(
    visitor: BrowserContext, server: Server
) -> None:
    local = server.url.replace("127.0.0.1", "localhost")
    page = await visitor.new_page()
    await page.goto((await login_url(server)).replace(server.url, local))
    await expect(page.get_by_role("button", name="Connection: Connected")).to_be_visible()
    shop = await PreviewPage.open(visitor, server, local)
    await shop.serve(PLAIN)
    await expect(shop.frame.get_by_role("heading", name="Hello")).to_be_visible()
    assert {asked["headers"]["Host"] for asked in shop.requests} == {f"127.0.0.1:{shop.port}"}
    assert not [asked for asked in shop.requests if "bullpen" in asked["headers"].get("Cookie", "")]


async def test_a_browser_elsewhere_is_told_how_to_bring_the_port_over(
    browser: Browser, tmp_path: Path, workspace: Path
) -> None:
    server = Server(tmp_path / "home", workspace)
    elsewhere = f"box.localhost:{server.port}"  # a name that is not this machine's own, and leads here
    server.set(BULLPEN_ALLOWED_HOSTS=elsewhere)
    await server.start()
    try:
        profile = await new_profile(browser)
        page = await profile.new_page()
        await page.goto((await login_url(server)).replace(server.url, f"http://{elsewhere}"))
        await expect(page.get_by_role("button", name="Connection: Connected")).to_be_visible()
        shop = await PreviewPage.open(profile, server, f"http://{elsewhere}")
        await shop.serve(PLAIN)
        await expect(shop.panel).to_contain_text(f"ssh -L {shop.port}:127.0.0.1:{shop.port} box.localhost")
        await expect(shop.page.locator("iframe")).to_have_count(0)
        assert not (workspace / "requests.jsonl").exists()
    finally:
        await server.close()


async def test_on_a_phone_the_preview_has_the_whole_screen(browser: Browser, server: Server) -> None:
    session = await server.new_session(title="On the go")
    profile = await new_profile(browser, 390, 780)
    page = await profile.new_page()
    await page.goto(await login_url(server))
    shop = PreviewPage(page, server, await server.new_terminal(session["id"]))
    await shop.serve(PLAIN)
    await page.get_by_role("link", name="On the go").click()
    await page.get_by_role("button", name="Session menu").click()
    await page.get_by_role("menuitem", name="Preview").click()
    await expect(shop.frame.get_by_role("heading", name="Hello")).to_be_visible()
    assert await page.locator("iframe").evaluate("frame => frame.clientWidth") == 390
    await expect(shop.panel.get_by_role("button", name="Phone")).to_have_count(0)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.get_by_role("button", name="Close panel").click()
    await expect(page.locator("iframe")).to_have_count(0)
