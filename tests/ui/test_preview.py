"""The preview shows the page of a program of the session; that page cannot reach Bullpen's page or server."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, FrameLocator, Locator, Page, expect

from support.listening_programs import type_line, until_ports
from support.pages import login_url, new_profile
from support.ports import free_port
from support.server import SECONDS, Server

WEB_SERVER = """
import http.server, json, sys

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open("requests.jsonl", "a") as file:
            print(json.dumps({"path": self.path, "headers": dict(self.headers)}), file=file)
        body = open("page.html", "rb").read()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", "preview=1")
        self.end_headers()
        self.wfile.write(body)

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
PLAIN = (
    "<!doctype html><h1>Hello from the session</h1><script>document.body.append(location.pathname)</script>"
)
# Tries every way to Bullpen's page and server, and shows whether each was refused.
HOSTILE = """<!doctype html><button onclick="go()">Go</button><pre></pre><script>
const bullpen = 'BULLPEN', tries = {
  top: () => (top.location = bullpen + '/gone'),
  topByLink: () => open(bullpen + '/gone', '_top') ?? refused(),
  parent: () => parent.document.body.innerHTML,
  storage: () => parent.localStorage.getItem('bullpen.secret'),
  frameElement: () => frameElement?.src ?? refused(),
  read: () => fetch(bullpen + '/api/sessions', { credentials: 'include' }),
  blind: () => fetch(bullpen + '/api/sessions', { credentials: 'include', mode: 'no-cors' })
    .then((response) => response.text())
    .then((text) => text || refused()),
  other: () => fetch(bullpen.replace('127.0.0.1', 'localhost') + '/api/sessions', { credentials: 'include' }),
  socket: () => new Promise((opened, failed) => {
    const socket = new WebSocket(bullpen.replace('http', 'ws') + '/ws/dashboard')
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
    """The page of a session with its preview, and a web server in the session that records its requests."""

    def __init__(self, page: Page, server: Server, worker: dict[str, Any]) -> None:
        self.page = page
        self.server = server
        self.worker = worker
        self.port = free_port()

    @classmethod
    async def open(
        cls, device: BrowserContext, server: Server, url: str | None = None, level: str = "open"
    ) -> "PreviewPage":
        session = await server.new_session(title="Shop")
        terminal = await server.new_terminal(session["id"], sandbox=level)
        this = cls(await device.new_page(), server, terminal)
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
        """Return the requests that the web server has received so far."""
        lines = (self.server.workspace / "requests.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    async def until_frame_shows(self, url: str) -> None:
        """Wait until the frame shows this address."""
        async with asyncio.timeout(SECONDS):
            while [each.url for each in self.page.frames[1:]] != [url]:
                await asyncio.sleep(0.05)

    async def start_web_server(self, html: str) -> None:
        """Start the web server in the session's terminal, and let the page look for it at once."""
        (self.server.workspace / "page.html").write_text(html)
        (self.server.workspace / "web.py").write_text(WEB_SERVER)
        await type_line(self.server, self.worker, f"python3 web.py {self.port}")
        await until_ports(self.server, self.worker["sessionId"], {self.port})
        await self.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


@pytest_asyncio.fixture(loop_scope="session")
async def preview(device: BrowserContext, server: Server) -> PreviewPage:
    return await PreviewPage.open(device, server)


async def test_the_page_of_a_web_server_is_shown_beside_its_session_until_the_server_ends(
    preview: PreviewPage,
) -> None:
    page, panel = preview.page, preview.panel
    await expect(panel).to_contain_text("Start your development server in a terminal of this session")
    await preview.start_web_server(PLAIN)
    await expect(preview.frame.get_by_role("heading", name="Hello from the session")).to_be_visible()
    row = panel.get_by_role("list", name="Ports").get_by_role("listitem")
    await expect(row).to_contain_text(f"{preview.port}")
    await expect(row).to_contain_text("python3")
    await expect(row).to_contain_text(preview.worker["name"])
    link = row.get_by_role("link", name="in a new tab")
    assert await link.get_attribute("rel") == "noopener noreferrer"
    assert await link.get_attribute("href") == f"http://localhost:{preview.port}/"
    assert await page.evaluate("window.violations") == []

    await type_line(preview.server, preview.worker, "\x03")
    await expect(panel).to_contain_text("No open ports")
    await expect(page.locator("iframe")).to_have_count(0)


async def test_the_page_of_a_web_server_in_the_sandbox_is_shown_as_well(
    device: BrowserContext, server: Server
) -> None:
    preview = await PreviewPage.open(device, server, level="workspace")
    await preview.start_web_server(PLAIN)
    await expect(preview.frame.get_by_role("heading", name="Hello from the session")).to_be_visible()
    await expect(preview.panel.get_by_role("list", name="Ports")).to_contain_text(preview.worker["name"])
    assert preview.worker["sandbox"] == "workspace"


async def test_a_page_is_shown_in_a_tab_of_its_session_also_after_a_reload(preview: PreviewPage) -> None:
    await preview.start_web_server(PLAIN)
    page = preview.page
    await preview.panel.get_by_role("button", name="Show in a tab").click()
    tab = page.get_by_role("tab", name=f"Port {preview.port}")
    await expect(tab).to_be_visible()
    await page.get_by_role("button", name="Hide the panel").click()
    shown = preview.frame.get_by_role("heading", name="Hello from the session")
    await expect(shown).to_be_visible()
    workers = (await preview.server.call("GET", f"/api/sessions/{preview.worker['sessionId']}"))["workers"]
    web = workers[-1]
    assert (web["type"], web["url"]) == ("web", f"http://localhost:{preview.port}/")
    field = page.get_by_role("textbox", name="Path")
    await field.fill("/deep")
    await field.press("Enter")
    await preview.until_frame_shows(f"http://localhost:{preview.port}/deep")
    await page.reload()
    await expect(shown).to_be_visible()
    await preview.until_frame_shows(f"http://localhost:{preview.port}/deep")
    workers_path = f"/api/sessions/{preview.worker['sessionId']}/workers"
    await preview.server.call("DELETE", f"{workers_path}/{web['id']}", 200)
    await expect(page.get_by_text("This page is closed")).to_be_visible()
    await expect(page.locator("iframe")).to_have_count(0)
    await page.get_by_role("button", name="Show it again").click()
    await expect(shown).to_be_visible()
    assert await page.evaluate("window.violations") == []


async def test_a_preview_opens_a_path_is_reloaded_and_gets_the_width_of_a_phone(
    preview: PreviewPage,
) -> None:
    await preview.start_web_server(PLAIN)
    await preview.panel.get_by_label("Path").fill("cart?x=1")
    await preview.page.keyboard.press("Enter")
    await expect(preview.frame.locator("body")).to_contain_text("/cart")
    await expect(preview.panel.get_by_label("Path")).to_have_value("/cart?x=1")
    (preview.server.workspace / "page.html").write_text("<h1>Second</h1>")
    await preview.panel.get_by_role("button", name="Reload").click()
    await expect(preview.frame.get_by_role("heading", name="Second")).to_be_visible()
    assert [each["path"] for each in preview.requests if "favicon" not in each["path"]][-1] == "/cart?x=1"

    frame = preview.page.locator("iframe")
    await preview.panel.get_by_role("button", name="Phone").click()
    assert await frame.evaluate("frame => frame.clientWidth") == 390
    await preview.page.reload()  # the page keeps the path and the width
    await expect(preview.panel.get_by_label("Path")).to_have_value("/cart?x=1")
    await expect(preview.panel.get_by_role("button", name="Phone")).to_have_attribute("aria-pressed", "true")


@pytest.mark.own_server
async def test_no_cookie_of_bullpen_reaches_a_preview(preview: PreviewPage, device: BrowserContext) -> None:
    """This holds also if the browser has a cookie of Bullpen for the host name of the frame."""
    [cookie] = await device.cookies()
    await device.add_cookies(
        [
            {
                "name": cookie["name"],
                "value": "x",
                "domain": "localhost",
                "path": "/",
                "sameSite": cookie["sameSite"],
            }
        ]
    )
    assert len(await device.cookies()) == 2
    await preview.start_web_server(PLAIN)
    await expect(preview.frame.get_by_role("heading")).to_be_visible()
    await preview.panel.get_by_role("button", name="Reload").click()
    await expect(preview.frame.get_by_role("heading")).to_be_visible()
    assert len(preview.requests) >= 2
    for request in preview.requests:
        assert cookie["name"] not in request["headers"].get("Cookie", ""), request
        assert "Referer" not in request["headers"]
        assert request["headers"]["Host"] == f"localhost:{preview.port}"


async def test_a_page_in_the_preview_reaches_neither_the_page_nor_the_server_of_bullpen(
    preview: PreviewPage,
) -> None:
    url = preview.page.url
    await preview.start_web_server(HOSTILE.replace("BULLPEN", preview.server.url))
    # After a click of a user a browser allows a page more.
    await preview.frame.get_by_role("button", name="Go").click()
    outcomes = preview.frame.locator("pre")
    await expect(outcomes).to_contain_text("socket")
    results = json.loads(await outcomes.inner_text())
    assert results == dict.fromkeys(results, "refused")
    assert len(results) == 9
    assert preview.page.url == url
    await expect(preview.panel).to_be_visible()


async def test_a_preview_that_has_the_focus_is_outlined(preview: PreviewPage) -> None:
    """No attribute of a frame prevents this, and the terminal takes the focus back only once."""
    await preview.page.locator(".xterm-helper-textarea").focus()
    await preview.start_web_server("<input id=field><script>setInterval(() => field.focus(), 100)</script>")
    frame = preview.page.locator("iframe")
    await expect(frame).to_be_focused()
    await expect(frame).to_have_css("outline-style", "solid")


async def test_a_preview_cannot_load_the_page_of_bullpen(preview: PreviewPage) -> None:
    for url in (preview.server.url, preview.server.url.replace("127.0.0.1", "localhost")):
        (preview.server.workspace / "requests.jsonl").unlink(missing_ok=True)
        await preview.start_web_server(f"<script>location = {url!r} + '/'</script>")
        await preview.panel.get_by_role("button", name="Reload").click()
        await preview.until_frame_shows("chrome-error://chromewebdata/")
        await expect(preview.frame.locator("#app")).to_have_count(0)
        await type_line(preview.server, preview.worker, "\x03")
        await until_ports(preview.server, preview.worker["sessionId"], set())


async def test_a_page_at_localhost_loads_the_preview_from_127_0_0_1(
    visitor: BrowserContext, server: Server
) -> None:
    local = server.url.replace("127.0.0.1", "localhost")
    page = await visitor.new_page()
    await page.goto((await login_url(server)).replace(server.url, local))
    await expect(page.get_by_role("button", name="Connection: Connected")).to_be_visible()
    preview = await PreviewPage.open(visitor, server, local)
    await preview.start_web_server(PLAIN)
    await expect(preview.frame.get_by_role("heading", name="Hello")).to_be_visible()
    assert {request["headers"]["Host"] for request in preview.requests} == {f"127.0.0.1:{preview.port}"}
    assert not [request for request in preview.requests if "bullpen" in request["headers"].get("Cookie", "")]


async def test_a_browser_on_another_machine_is_shown_how_to_forward_the_port(
    browser: Browser, tmp_path: Path, workspace: Path
) -> None:
    server = Server(tmp_path / "home", workspace)
    remote_host = f"box.localhost:{server.port}"  # it resolves to this machine but is not one of its names
    server.set(BULLPEN_ALLOWED_HOSTS=remote_host)
    await server.start()
    try:
        profile = await new_profile(browser)
        page = await profile.new_page()
        await page.goto((await login_url(server)).replace(server.url, f"http://{remote_host}"))
        await expect(page.get_by_role("button", name="Connection: Connected")).to_be_visible()
        preview = await PreviewPage.open(profile, server, f"http://{remote_host}")
        await preview.start_web_server(PLAIN)
        await expect(preview.panel).to_contain_text(
            f"ssh -L {preview.port}:127.0.0.1:{preview.port} box.localhost"
        )
        await expect(preview.page.locator("iframe")).to_have_count(0)
        assert not (workspace / "requests.jsonl").exists()
    finally:
        await server.close()


async def test_on_a_phone_the_preview_has_the_whole_screen(browser: Browser, server: Server) -> None:
    session = await server.new_session(title="On the go")
    profile = await new_profile(browser, 390, 780)
    page = await profile.new_page()
    await page.goto(await login_url(server))
    preview = PreviewPage(page, server, await server.new_terminal(session["id"]))
    await preview.start_web_server(PLAIN)
    await page.get_by_role("link", name="On the go").click()
    await page.get_by_role("button", name="Session menu").click()
    await page.get_by_role("menuitem", name="Preview").click()
    await expect(preview.frame.get_by_role("heading", name="Hello")).to_be_visible()
    assert await page.locator("iframe").evaluate("frame => frame.clientWidth") == 390
    await expect(preview.panel.get_by_role("button", name="Phone")).to_have_count(0)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.get_by_role("button", name="Close panel").click()
    await expect(page.locator("iframe")).to_have_count(0)
