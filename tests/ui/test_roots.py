"""The page asks the owner whether sessions are allowed in a new directory, then starts the session."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import BrowserContext, expect

from support.server import Server


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """Return a server without a setting for its workspace roots."""
    (tmp_path / "user").mkdir()
    (tmp_path / "app").mkdir()
    this = Server(tmp_path / "home", tmp_path / "user", {"AGENT_WORKSPACE_ROOT": ""})
    await this.start()
    yield this
    await this.close()


async def test_the_page_asks_whether_sessions_are_allowed_in_a_new_directory(
    device: BrowserContext, server: Server, tmp_path: Path
) -> None:
    page = await device.new_page()
    await page.goto(server.url)
    await page.get_by_label("Directory").fill(str(tmp_path / "app"))
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name=f"Allow sessions in {tmp_path}/app?")
    await dialog.get_by_role("button", name="Allow").click()
    await expect(page.get_by_role("radio", name="app")).to_be_checked()
    await page.get_by_role("button", name="New terminal").click()
    await expect(page.get_by_role("tab", name="Terminal")).to_be_visible()
    [session] = (await server.call("GET", "/api/sessions"))["sessions"]
    assert session["locationPath"] == str(tmp_path / "app")
    roots = (await server.call("GET", "/api/roots"))["roots"]
    assert str(tmp_path / "app") in [root["path"] for root in roots]


async def test_a_session_without_a_directory_gets_a_new_one(device: BrowserContext, server: Server) -> None:
    page = await device.new_page()
    await page.goto(server.url)
    await page.get_by_role("button", name="New terminal").click()
    await expect(page.get_by_role("tab", name="Terminal")).to_be_visible()
    [session] = (await server.call("GET", "/api/sessions"))["sessions"]
    assert Path(session["locationPath"]).parent == server.workspace / "bullpen"
