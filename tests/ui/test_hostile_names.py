"""Names with markup or direction letters run no script and do not change the text or layout beside them."""

import base64
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Page, Request, expect

from support.chat_page import ChatPage
from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted

MARKUP = "<img src=https://evil.example/t.png onerror='window.injected = 1'>"
BRANCH = "<img/src=x/onerror=window.injected=1>\u202e"
TITLE = f"needle {MARKUP} " + "very-long-" * 12
REORDERED = (
    f"{TITLE} \u202e\u2066 turned \x1b[31m"  # a session title cannot have such letters; titles of agents can
)
FILES = [f"{MARKUP.replace('/', '%')}.txt", "\u202egnp.exe", "two\nlines\x1b[31m.txt", "long" * 50 + ".txt"]

# Letters that change the text direction have no effect outside their box, if the box has no other text.
FIND_MIXED_BOXES = r"""() => {
  const turning = /[\u202a-\u202e\u2066-\u2069]/
  const boxOf = (node) => {
    const { display, unicodeBidi } = getComputedStyle(node)
    const open = /^inline$|^contents$/.test(display) && !/isolate/.test(unicodeBidi)
    return open ? boxOf(node.parentElement) : node
  }
  const found = []
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const node = texts.currentNode
    if (!turning.test(node.data) || !node.parentElement.checkVisibility()) continue
    const box = boxOf(node.parentElement)
    if (box.closest('.markdown')) continue // all of its text has one author
    const alone = box.textContent.trim() === node.data.trim()
    if (!alone) found.push(`${box.outerHTML.slice(0, 160)} … ${node.data.slice(0, 60)}`)
  }
  return found
}"""


@pytest.fixture
def repo(workspace: Path) -> Repo:
    repo = Repo(workspace)
    repo.git("checkout", "-q", "-b", BRANCH)
    for name in FILES:
        repo.write(name, "before\n")
    repo.commit(f"{MARKUP}\u202e")
    for name in FILES:
        repo.write(name, f"{MARKUP}\n")
    return repo


@pytest_asyncio.fixture(loop_scope="session")
async def talk(repo: Repo, server: Server) -> SessionClient:
    call = {
        "title": REORDERED,
        "kind": "edit",
        "toolCallId": "t",
        "locations": [{"path": str(repo.path / FILES[1])}],
    }
    params = {"toolCall": call, "options": [{"optionId": "yes", "name": TITLE, "kind": "allow_once"}]}
    ask = {"do": "ask", "method": "session/request_permission", "params": params}
    prompts = [[{"do": "chunk", "text": f"{REORDERED}\n\nthe end"}], [ask]]
    await define_scripted(server, "evil", {"prompts": prompts})
    await server.call("POST", "/api/repositories", 201, json={"path": str(repo.path)})
    talk = await SessionClient.begin(server, "evil", title=TITLE)
    body = {"type": "terminal", "name": TITLE[:60], "role": "shell"}
    await server.new_terminal(talk.id, **body)
    await talk.run_turn(REORDERED, role="evil")
    await talk.prompt(f"ask {REORDERED}", role="evil")
    await talk.open_permission()
    return talk


async def test_names_with_markup_are_shown_in_every_view_and_run_nothing(
    talk: SessionClient, device: BrowserContext, server: Server
) -> None:
    page = await device.new_page()
    foreign_urls: list[str] = []

    def record_request(request: Request) -> None:
        if not request.url.startswith((server.url, "data:", "blob:")):
            foreign_urls.append(request.url)

    page.on("request", record_request)
    for name, open_view in VIEWS.items():
        await open_view(page, talk)
        await check_harmless(page, name)
    assert foreign_urls == []


async def check_harmless(page: Page, view: str) -> None:
    """Check that names added no element, did not reorder other text and did not widen the page."""
    for selector in ("script:not([src])", "iframe", "[onerror]", "img[src^='https:']"):
        await expect(page.locator(f"body {selector}")).to_have_count(0)
    assert await page.evaluate(FIND_MIXED_BOXES) == [], view
    widths = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1], view
    assert await page.evaluate("[window.injected, window.violations]") == [None, []], view


async def _home(page: Page, talk: SessionClient) -> None:
    await page.goto(f"{talk.server.url}/#/")
    await expect(page.get_by_role("heading", name="Waiting for you")).to_be_visible()


async def _session(page: Page, talk: SessionClient) -> None:
    await page.goto(f"{talk.server.url}/#/session/{talk.id}")
    await expect(page.get_by_role("log")).to_contain_text("the end")
    path = page.get_by_role("region", name="Permission").locator(".path")
    await expect(path).to_have_text("⟨U+202E⟩gnp.exe")
    await expect(path).to_have_attribute("title", f"{talk.server.workspace}/⟨U+202E⟩gnp.exe")


async def _changes(page: Page, talk: SessionClient) -> None:
    await page.get_by_role("button", name="Show the panel").click()
    panels = page.get_by_role("tablist", name="Panels")
    for panel in ("Plan", "Details", "Files", "Preview", "Changes"):
        await panels.get_by_role("tab", name=panel).click()
        await expect(page.get_by_role("complementary", name=panel)).to_be_visible()
        await check_harmless(page, panel)
    changes = page.get_by_role("complementary", name="Changes")
    await changes.get_by_role("button", name="gnp.exe").click()
    await expect(page.get_by_role("region", name="gnp.exe")).to_contain_text("onerror")


async def _inbox(page: Page, talk: SessionClient) -> None:
    await page.goto(f"{talk.server.url}/#/inbox")
    await expect(page.get_by_role("main").get_by_role("article")).to_have_count(1)


async def _search(page: Page, talk: SessionClient) -> None:
    await page.goto(f"{talk.server.url}/#/search/needle")
    await expect(page.get_by_role("main").locator("mark").first).to_be_visible()


async def _usage(page: Page, talk: SessionClient) -> None:
    await page.goto(f"{talk.server.url}/#/usage")
    await expect(page.get_by_role("heading", name="Usage")).to_be_visible()


async def _replay(page: Page, talk: SessionClient) -> None:
    await page.goto(f"{talk.server.url}/#/replay/{talk.id}")
    await page.get_by_role("slider", name="Time").press("End")
    await expect(page.get_by_role("log")).to_contain_text("the end")


async def _palette(page: Page, talk: SessionClient) -> None:
    await page.keyboard.press("Control+K")
    await page.get_by_role("combobox", name="Command").fill("needle")
    await expect(page.get_by_role("dialog").get_by_role("option").first).to_be_visible()


VIEWS: dict[str, Callable[[Page, SessionClient], Awaitable[None]]] = {
    "home": _home,
    "session": _session,
    "changes": _changes,
    "inbox": _inbox,
    "search": _search,
    "usage": _usage,
    "replay": _replay,
    "palette": _palette,
}

PASTE_FILE = """(field, [name, type, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))
  const transfer = new DataTransfer()
  transfer.items.add(new File([bytes], name, { type }))
  const how = { clipboardData: transfer, bubbles: true, cancelable: true }
  field.dispatchEvent(new ClipboardEvent('paste', how))
}"""


async def test_a_file_that_only_claims_to_be_a_picture_is_refused_and_never_shown(chat: ChatPage) -> None:
    field = chat.page.get_by_label("Message", exact=True)
    page = b"<!doctype html><script>window.injected = 1</script>"
    svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.injected = 1'/>"
    for name, content in (("page.png", page), ("../../x\u202egnp.png", svg)):
        await field.evaluate(PASTE_FILE, [name, "image/png", base64.b64encode(content).decode()])
        problem = chat.page.get_by_role("alert")
        await expect(problem).to_contain_text("was not attached")
        await check_harmless(chat.page, name)
        await chat.page.reload()
    await chat.send_message("[[chunk still here]]")
    await expect(chat.log).to_contain_text("still here")
    assert await chat.page.evaluate("[window.injected, window.violations]") == [None, []]
    events = await chat.talk.events()
    assert all(not each["data"].get("imageIds") for each in events)
