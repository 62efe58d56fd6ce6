"""Changes, files and documents in the page: they are shown as text only, and changes take comments."""

from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Locator, Page, expect

from support.chat_page import ChatPage
from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted

BEFORE = "import os\n\n\ndef greet(name):\n    return 'hello ' + name\n\n\nprint(greet('you'))\n"
AFTER = BEFORE.replace("'hello ' + name", "f'good day {name}'").replace("import os\n", "import sys\n")
HOSTILE = """<!doctype html><script>parent.broken = true; fetch('/api/sessions')</script>
<img src=x onerror="window.broken = true"><iframe src="/"></iframe>"""


@pytest.fixture
def repo(workspace: Path) -> Repo:
    repo = Repo(workspace)
    repo.write("src/greet.py", BEFORE)
    repo.write("notes.md", "# Notes\n\nplain\n")
    repo.commit("more")
    repo.write("src/greet.py", AFTER)
    repo.write("staged.txt", "one\n")
    repo.git("add", "staged.txt")
    repo.write("new page.html", HOSTILE)
    return repo


@pytest_asyncio.fixture(loop_scope="session")
async def session(repo: Repo, device: BrowserContext, server: Server) -> ChatPage:
    await define_scripted(server)
    return await ChatPage.at(device, await SessionClient.begin(server))


async def open_panel(page: Page, name: str) -> Locator:
    await page.get_by_role("button", name="Show the panel").click()
    await page.get_by_role("tablist", name="Panels").get_by_role("tab", name=name).click()
    return page.get_by_role("complementary", name=name)


async def open_changes(page: Page) -> Locator:
    panel = await open_panel(page, "Changes")
    await panel.get_by_role("button", name="greet.py").click()
    file = page.get_by_role("region", name="src/greet.py")
    await expect(file).to_contain_text("good day")
    return file


async def test_comments_on_a_diff_are_sent_as_one_message(session: ChatPage) -> None:
    page = session.page
    file = await open_changes(page)
    await expect(file).to_contain_text("not staged")
    await expect(page.get_by_role("region", name="staged.txt")).to_contain_text("staged")

    await file.get_by_role("button", name="Comment on line 5", exact=True).click()
    await page.get_by_label("Comment on line 5 of src/greet.py").fill("say it in French")
    await file.get_by_role("button", name="Comment on old line 1", exact=True).click()
    await page.get_by_label("Comment on old line 1 of src/greet.py").fill("why not both?")
    await page.reload()  # a comment that is being written survives a reload
    await expect(page.get_by_label("Comment on line 5 of src/greet.py")).to_have_value("say it in French")
    await expect(page.get_by_text("2 comments not sent yet")).to_be_visible()

    await page.get_by_role("button", name="Send to").click()
    await expect(page.get_by_label("Comment on line 5 of src/greet.py")).to_have_count(0)
    prompt = (await session.talk.wait_for_event("user_prompt"))["data"]["text"]
    for words in ("src/greet.py", "say it in French", "why not both?", "good day", "import os"):
        assert words in prompt
    assert len([each for each in await session.talk.events() if each["type"] == "user_prompt"]) == 1
    assert await page.evaluate("window.violations") == []


async def test_a_comment_is_written_and_sent_with_the_keyboard(session: ChatPage) -> None:
    page = session.page
    file = await open_changes(page)
    line = file.get_by_role("button", name="Comment on line 5", exact=True)
    box = page.get_by_label("Comment on line 5 of src/greet.py")
    await line.press("Enter")
    await expect(box).to_be_focused()
    await box.press("Escape")  # nothing was written
    await expect(box).to_have_count(0)
    await expect(line).to_be_focused()

    await line.press("Enter")
    await box.press("Control+Enter")  # the text is still empty
    await expect(box).to_be_focused()
    await box.press_sequentially("say it in French")
    await box.press("Escape")
    await expect(line).to_be_focused()
    await expect(box).to_have_value("say it in French")
    assert [each for each in await session.talk.events() if each["type"] == "user_prompt"] == []

    await box.press("Control+Enter")
    await expect(box).to_have_count(0)
    await expect(line).to_be_focused()
    assert "say it in French" in (await session.talk.wait_for_event("user_prompt"))["data"]["text"]


async def test_a_diff_has_one_or_two_columns_and_can_be_folded(session: ChatPage) -> None:
    page = session.page
    file = await open_changes(page)
    lines = file.get_by_role("row").filter(has_text="return")
    await expect(lines).to_have_count(2)
    await page.get_by_role("button", name="Hide the panel").click()  # two columns need room
    await page.get_by_role("radio", name="Split").click()
    await expect(lines).to_have_count(1)
    await expect(lines).to_contain_text("hello")
    await expect(lines).to_contain_text("good day")
    await expect(file.locator(".token-keyword").first).to_be_visible()
    await file.get_by_role("button", name="greet.py").click()
    await expect(lines).to_have_count(0)
    await page.reload()
    await expect(file.get_by_role("button", name="greet.py")).to_have_attribute("aria-expanded", "false")
    await page.get_by_role("button", name="Fold all").click()
    await page.get_by_role("button", name="Unfold all").click()
    await expect(lines).to_have_count(1)


async def test_a_file_that_an_agent_changes_appears_without_a_reload(session: ChatPage, repo: Repo) -> None:
    await open_changes(session.page)
    repo.write("later.txt", "more\n")
    await expect(session.page.get_by_role("region", name="later.txt")).to_contain_text("more")


async def test_a_directory_is_read_when_it_is_unfolded_in_the_file_tree(session: ChatPage) -> None:
    page = session.page
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url) if "/files" in request.url else None)
    panel = await open_panel(page, "Files")
    await panel.get_by_role("treeitem", name="src").click()
    await panel.get_by_role("treeitem", name="greet.py").click()
    content = page.get_by_role("region", name="Content of src/greet.py")
    await expect(content).to_contain_text("good day")
    await expect(content.locator(".token-keyword").first).to_be_visible()
    assert [url.partition("/files")[2] for url in requests] == ["", "/src", "/src/greet.py"]


async def test_a_document_follows_its_file(session: ChatPage, repo: Repo) -> None:
    page = session.page
    panel = await open_panel(page, "Files")
    await panel.get_by_role("treeitem", name="notes.md").click()
    await expect(page.get_by_role("region", name="Content of notes.md").locator("h1")).to_have_text("Notes")
    await page.get_by_role("button", name="Open beside").click()
    document = page.get_by_role("article", name="notes.md")
    await expect(document.locator("h1")).to_have_text("Notes")
    repo.write("notes.md", "# Later\n\n<script>window.broken = true</script> [x](javascript:alert(1))\n")
    await expect(document.locator("h1")).to_have_text("Later")
    await expect(document).to_contain_text("<script>window.broken = true</script>")
    assert await document.locator("a, script").count() == 0
    assert await page.evaluate("window.broken === undefined")


async def test_a_file_of_a_workspace_is_only_shown_as_text(
    session: ChatPage, device: BrowserContext, repo: Repo
) -> None:
    page = session.page
    repo.write("worker.js", "self.addEventListener('fetch', () => {})")
    panel = await open_panel(page, "Files")
    await panel.get_by_role("treeitem", name="new page.html").click()
    await expect(page.get_by_role("region", name="Content of new page.html")).to_contain_text(
        "<!doctype html>"
    )
    assert await page.evaluate(
        "window.broken === undefined && document.querySelectorAll('iframe').length === 0"
    )

    files = f"{session.talk.server.url}{session.talk.path}/files"
    registered = await page.evaluate(
        "(url) => navigator.serviceWorker.register(url).then(() => true, () => false)", f"{files}/worker.js"
    )
    assert registered is False
    other = await device.new_page()
    answer = await other.goto(f"{files}/new%20page.html")  # the cookie alone opens nothing
    assert answer and answer.status in (401, 403)
