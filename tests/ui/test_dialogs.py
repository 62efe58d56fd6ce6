"""Dialogs and menus: the focus when they open, and what they list."""

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from support.pages import log_in
from support.server import Server
from support.session_client import define_scripted


async def open_session(profile: BrowserContext, server: Server) -> Page:
    session = await server.new_session(title="Atlas")
    page = await profile.new_page()
    await page.goto(f"{server.url}/#/session/{session['id']}")
    await expect(page.get_by_role("heading", name="Atlas")).to_be_visible()
    return page


@pytest.mark.parametrize(
    ("command", "field"),
    [
        ("share session", "Days until the link expires"),
        ("export session", "Format"),
        ("rename session", "Title"),
        ("new session", "Prompt"),
    ],
)
async def test_a_dialog_opens_with_the_focus_in_its_form_and_returns_it_to_the_page(
    device: BrowserContext, server: Server, command: str, field: str
) -> None:
    page = await open_session(device, server)
    await page.get_by_role("button", name="Session menu").focus()
    await page.keyboard.press("Control+K")
    await page.get_by_role("combobox", name="Command").fill(command)
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label(field)).to_be_focused()
    await page.keyboard.press("Shift+Tab")
    await expect(dialog.locator(":focus")).to_be_visible()  # the focus stays in the dialog
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_the_menu_of_a_new_tab_lists_two_agents_with_the_same_name(
    device: BrowserContext, server: Server
) -> None:
    for agent_id in ("first", "second"):
        await define_scripted(server, agent_id, name="Twin")
    page = await open_session(device, server)
    await page.get_by_role("button", name="New tab").click()
    await expect(page.get_by_role("menuitem", name="New agent: Twin")).to_have_count(2)


async def test_menu_and_palette_on_a_phone_name_no_keys(browser: Browser, server: Server) -> None:
    phone = await browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    await log_in(phone, server)
    page = await open_session(phone, server)
    await page.get_by_role("button", name="Session menu").tap()
    archive = page.get_by_role("menuitem", name="Archive session")
    await expect(archive).to_be_visible()
    assert "Ctrl" not in await archive.inner_text()
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Search", exact=True).tap()
    settings = page.get_by_role("option", name="Settings", exact=False).first
    await expect(settings).to_be_visible()
    assert "Ctrl" not in await settings.inner_text()
