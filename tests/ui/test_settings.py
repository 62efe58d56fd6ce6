"""The settings page: worktrees, share links, permission rules, tokens, and import and export."""

from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from support.pages import new_profile
from support.registered_repository import RegisteredRepository
from support.repositories import Repo
from support.server import Server


@pytest_asyncio.fixture(loop_scope="session")
async def page(device: BrowserContext) -> Page:
    return await device.new_page()


async def open_section(page: Page, server: Server, section: str) -> None:
    await page.goto(f"{server.url}/#/settings/{section}")
    await expect(page.locator("main h1")).to_be_visible()


async def test_a_worktree_is_removed_after_its_uncommitted_work_was_named_and_can_be_restored(
    page: Page, server: Server, workspace: Path
) -> None:
    repository = await RegisteredRepository.register(server, Repo(workspace / "repo"))
    for branch in ("topic", "done"):
        await repository.add(branch=branch)
    notes = workspace / "repo.worktrees/topic/notes.txt"
    notes.write_text("not committed\n")
    await open_section(page, server, "worktrees")
    row = page.get_by_role("listitem").filter(has_text="topic")
    await expect(row).to_contain_text("uncommitted: notes.txt")

    await page.get_by_role("button", name="Remove finished worktrees").click()
    await expect(page.get_by_role("status").filter(has_text="1 removed")).to_be_visible()
    await expect(page.get_by_role("button", name="Restore the worktree done")).to_be_visible()
    assert notes.exists()

    await page.get_by_role("button", name="Remove the worktree topic").click()
    question = page.get_by_role("dialog", name="Remove the worktree topic?")
    await expect(question).to_contain_text("uncommitted changes (notes.txt)")
    await question.get_by_role("button", name="Remove").click()
    restore = page.get_by_role("button", name="Restore the worktree topic")
    await expect(restore).to_be_visible()
    assert not notes.exists()
    await restore.click()
    await expect(page.get_by_role("button", name="Remove the worktree topic")).to_be_visible()
    assert notes.read_text() == "not committed\n"


async def test_a_share_link_is_shown_once_and_can_be_revoked(
    page: Page, browser: Browser, server: Server
) -> None:
    session = await server.new_session(title="to be shared")
    await page.goto(f"{server.url}/#/session/{session['id']}")
    await page.get_by_role("button", name="Session menu").click()
    await page.get_by_role("menuitem", name="Share…").click()
    await page.get_by_role("button", name="Create link").click()
    link = await page.get_by_role("dialog").locator("code").inner_text()
    guest = await (await new_profile(browser)).new_page()
    await guest.goto(link)
    await expect(guest.get_by_text("to be shared").first).to_be_visible()

    await open_section(page, server, "shares")
    assert link not in await page.locator("main").inner_text()
    await page.get_by_role("button", name="Revoke the link to to be shared").click()
    await expect(page.get_by_text("No links.")).to_be_visible()
    await guest.reload()
    await expect(guest.get_by_text("to be shared")).to_have_count(0)


async def test_a_session_is_exported_deleted_and_imported(page: Page, server: Server, tmp_path: Path) -> None:
    session = await server.new_session(title="A journey", agentId="demo")
    await page.goto(f"{server.url}/#/session/{session['id']}")
    await page.get_by_role("button", name="Session menu").click()
    await page.get_by_role("menuitem", name="Export…").click()
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Export", exact=True).click()
    file = tmp_path / (await download.value).suggested_filename
    assert file.name == "A-journey.zip"
    await (await download.value).save_as(file)
    await server.call("DELETE", f"/api/sessions/{session['id']}?purge=true")

    await open_section(page, server, "transfer")
    await page.get_by_label("File to import").set_input_files(file)
    await page.get_by_role("link", name="A journey").last.click()
    await expect(page.get_by_role("region", name="Archived session")).to_be_visible()
    await page.goto(f"{server.url}/#/settings/transfer")
    other = tmp_path / "other.zip"
    other.write_bytes(b"no archive")
    await page.get_by_label("File to import").set_input_files(other)
    await expect(page.get_by_role("alert")).to_contain_text(
        "other.zip is not a recording that Bullpen exported."
    )


async def test_a_permission_rule_is_added_and_removed(page: Page, server: Server) -> None:
    await open_section(page, server, "rules")
    await page.get_by_label("Name", exact=True).fill("run the tests")
    await page.get_by_role("combobox", name="Agent").select_option("demo")
    await page.get_by_role("combobox", name="Action").select_option("execute")
    await page.get_by_role("textbox", name="Command").fill("make test")
    await page.get_by_role("button", name="Add rule").click()
    row = page.get_by_role("listitem").filter(has_text="run the tests")
    await expect(row).to_contain_text("Run a command (make test)")
    [rule] = (await server.call("GET", "/api/rules"))["rules"]
    assert (rule["agentId"], rule["kind"], rule["command"]) == ("demo", "execute", "make test")
    await page.get_by_role("button", name="Remove the rule run the tests").click()
    await expect(page.get_by_text("No rules.")).to_be_visible()


async def test_the_list_of_devices_marks_the_browser_that_shows_it(page: Page, server: Server) -> None:
    code = (await server.call("POST", "/api/login-codes", 201))["url"].partition("#code=")[2]
    await server.call("POST", "/api/login", json={"code": code, "device": "Ada's phone"})
    await open_section(page, server, "devices")
    phone = page.get_by_role("listitem").filter(has_text="Ada's phone")
    await expect(phone).to_be_visible()
    await expect(phone).not_to_contain_text("this browser")
    mine = page.get_by_role("listitem").filter(has_text="this browser")
    await expect(mine).to_have_count(1)
    await mine.get_by_role("button", name="Log out…").click()
    await expect(page.get_by_role("dialog")).to_contain_text("This is the browser that you are using.")
    await page.get_by_role("button", name="Keep").click()
    await phone.get_by_role("button", name="Log out…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Log out").click()
    await expect(phone).to_have_count(0)


async def test_a_token_is_shown_once_and_can_be_revoked(page: Page, server: Server) -> None:
    await open_section(page, server, "tokens")
    await page.get_by_label("Name").fill("ci")
    await page.get_by_label("Scope").select_option("view")
    await page.get_by_role("button", name="Create token").click()
    token = await page.locator("main code").inner_text()
    assert token.startswith("bpt_")
    await page.reload()
    await expect(page.get_by_role("button", name="Revoke ci")).to_be_visible()
    assert token not in await page.locator("main").inner_text()
    await page.get_by_role("button", name="Revoke ci").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(page.get_by_text("No tokens.")).to_be_visible()
    assert (await server.call("GET", "/api/tokens"))["tokens"][0]["kind"] == "device"
