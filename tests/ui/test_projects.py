"""The home page adds projects and starts sessions in them."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import BrowserContext, expect

from support.git_http_server import git_http_server
from support.pages import login_url
from support.repositories import Repo
from support.server import Server


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A server with default settings, a project, and room for one session with an agent."""
    home = tmp_path / "user"
    Repo(home / "code/atlas")
    environment = {"AGENT_WORKSPACE_ROOT": "", "AGENT_MAX_SESSIONS": "1"}
    this = Server(home / ".local/share/bullpen", home, environment)
    this.home.mkdir(parents=True)
    await this.start()
    yield this
    await this.close()


async def test_a_project_is_added_by_completing_its_path_with_the_keyboard(
    visitor: BrowserContext, server: Server
) -> None:
    page = await visitor.new_page()
    await page.goto(await login_url(server))
    field = page.get_by_label("Directory, or address of a git repository")
    await field.press_sequentially("~/co")
    option = page.get_by_role("listbox", name="Directories").get_by_role("option", name="code")
    await expect(field).to_have_attribute("aria-activedescendant", await option.get_attribute("id") or "")
    await field.press("Tab")
    await expect(field).to_have_value(f"{server.workspace}/code/")
    await expect(page.get_by_role("option", name="atlas")).to_be_visible()
    await field.press("Enter")
    await expect(field).to_have_value(f"{server.workspace}/code/atlas")
    await field.press("Enter")
    await page.get_by_role("button", name="Allow", exact=True).click()
    await expect(page.get_by_role("radio", name="atlas")).to_be_checked()
    await expect(page.get_by_label("Prompt")).to_be_focused()
    await expect(page.get_by_label("Starts at")).to_contain_text("main")
    assert await page.evaluate("window.violations") == []


async def test_the_example_of_a_directory_lies_in_the_workspace_root(
    visitor: BrowserContext, server: Server
) -> None:
    server.set(AGENT_WORKSPACE_ROOT=str(server.workspace / "code"))
    await server.restart()
    page = await visitor.new_page()
    await page.goto(await login_url(server))
    await expect(page.get_by_placeholder(f"{server.workspace}/code/")).to_be_visible()
    await expect(page.get_by_placeholder(re.compile("~|home directory"))).to_have_count(0)


async def test_a_clone_shows_its_progress_and_is_cancelled_or_becomes_a_project(
    device: BrowserContext, server: Server, tmp_path: Path
) -> None:
    page = await device.new_page()
    await page.goto(server.url)
    field = page.get_by_label("Directory, or address of a git repository")
    with git_http_server(tmp_path / "remote") as remote:
        remote.hold()
        await field.fill(f"{remote.url}/project.git")
        await page.get_by_role("button", name="Clone", exact=True).click()
        await expect(page.get_by_text(f"Cloning into {server.workspace}/bullpen/project")).to_be_visible()
        assert await asyncio.to_thread(remote.asked_for_objects.wait, 60)
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.get_by_text("Cloning into")).to_have_count(0)
        remote.released.set()
        await page.get_by_label("Clone into").fill("~/code/")
        await page.get_by_role("button", name="Clone", exact=True).click()
        dialog = page.get_by_role("dialog", name=f"Allow sessions in {server.workspace}/code/project?")
        await dialog.get_by_role("button", name="Allow").click()
        await expect(page.get_by_role("radio", name="project")).to_be_checked()
        await page.get_by_role("button", name="Add a project").click()
        await field.fill(f"{remote.url}/private.git")
        await page.get_by_role("button", name="Clone", exact=True).click()
        await expect(page.get_by_role("alert")).to_contain_text("needs a login; use its ssh address")


async def test_a_session_starts_on_the_named_branch_at_the_chosen_one(
    device: BrowserContext, server: Server
) -> None:
    atlas = Repo(server.workspace / "code/atlas")
    atlas.git("checkout", "-q", "-b", "release")
    atlas.write("notes.txt", "only in the release\n")
    released = atlas.commit("release")
    atlas.git("checkout", "-q", "main")
    await server.call("POST", "/api/roots", 201, json={"path": str(server.workspace / "code")})
    await server.call("POST", "/api/repositories", 201, json={"path": str(atlas.path)})
    page = await device.new_page()
    await page.goto(server.url)
    await page.get_by_role("textbox", name="Branch").fill("fix-rivers")
    await page.get_by_label("Starts at").select_option("release")
    await page.get_by_label("Prompt").fill("hello")
    await page.get_by_role("button", name="Start", exact=True).click()
    await expect(page.get_by_role("log")).to_contain_text("You said: hello")
    (session,) = (await server.call("GET", "/api/sessions"))["sessions"]
    worktree = Path(session["locationPath"])
    assert worktree != atlas.path
    assert atlas.git("rev-parse", "--abbrev-ref", "HEAD", cwd=worktree).strip() == "fix-rivers"
    assert atlas.git("rev-parse", "HEAD", cwd=worktree).strip() == released
    assert atlas.git("status", "--porcelain") == ""


async def test_an_agent_that_is_not_installed_shows_the_command_that_installs_it(
    device: BrowserContext, server: Server
) -> None:
    agents = (await server.call("GET", "/api/agents"))["agents"]
    missing = next(each for each in agents if not each["installed"] and each["installHint"])
    page = await device.new_page()
    await page.goto(server.url)
    await page.get_by_label("Agent").select_option(missing["id"])
    form = page.locator("form").filter(has=page.get_by_label("Prompt"))
    await expect(form).to_contain_text(
        f"{missing['name']} is not installed. Install it with {missing['installHint']}"
    )
    await expect(form.get_by_role("button", name="New agent")).to_be_disabled()


async def test_at_the_limit_of_agents_the_page_names_the_setting_and_archives_the_idle_session(
    device: BrowserContext, server: Server
) -> None:
    page = await device.new_page()
    for title in ("first", "second"):
        await page.goto(f"{server.url}/#/")
        await page.get_by_label("Prompt").fill(title)
        await page.get_by_role("button", name="Start", exact=True).click()
        if title == "second":
            dialog = page.get_by_role("dialog", name="Archive an idle session?")
            await expect(dialog).to_contain_text("AGENT_MAX_SESSIONS")
            await dialog.get_by_role("button", name="Archive “first”").click()
        await expect(page.get_by_role("log")).to_contain_text(f"You said: {title}")
        await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    sessions = (await server.call("GET", "/api/sessions"))["sessions"]
    assert {each["title"]: each["status"] for each in sessions} == {"first": "completed", "second": "active"}
