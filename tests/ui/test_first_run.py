"""The home page without sessions offers a tour, and the sessions that agent-console has saved."""

import json
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, expect

from support.pages import login_url
from support.server import Server


async def test_the_demo_button_explains_the_plan_the_permission_and_the_change_it_promises(
    visitor: BrowserContext, server: Server
) -> None:
    page = await visitor.new_page()
    await page.goto(await login_url(server))
    promise = page.get_by_text("makes a plan, asks for permission and changes a file")
    await expect(promise).to_be_visible()
    await expect(page.get_by_text("Agents run in a sandbox (bubblewrap)")).to_be_visible()
    await page.get_by_role("button", name="Try the demo agent").click()
    log = page.get_by_role("log")
    await expect(log).to_contain_text("Press Allow, or Reject and nothing happens.")
    card = page.get_by_role("region", name="Permission")
    await expect(card).to_contain_text("The demo agent was here (1).")
    await card.get_by_role("button", name="Allow", exact=True).click(delay=120)
    await expect(log).to_contain_text("That was the tour.")
    await expect(log.get_by_role("figure", name="hello.md")).to_contain_text("The demo agent was here (1).")
    (session,) = (await server.call("GET", "/api/sessions"))["sessions"]
    assert "demo agent" in (Path(session["locationPath"]) / "hello.md").read_text()
    assert await page.evaluate("window.violations") == []


@pytest.mark.own_server
async def test_the_sessions_of_agent_console_are_offered_and_imported(
    device: BrowserContext, server: Server
) -> None:
    saved = {"id": "a", "worktreePath": str(server.workspace), "createdAt": "2025-01-01T00:00:00.000Z"}
    file = server.workspace / ".agent-console" / "sessions.json"
    file.parent.mkdir()
    file.write_text(json.dumps([saved, saved | {"id": "gone", "worktreePath": "/nowhere"}]))
    page = await device.new_page()
    await page.goto(server.url)
    await expect(page.get_by_text("has 2 sessions")).to_be_visible()
    await page.get_by_role("button", name="Import them").click()
    await expect(
        page.get_by_role("navigation", name="Sessions").get_by_role("link", name="workspace")
    ).to_be_visible()
    await expect(page.get_by_role("button", name="Import them")).to_have_count(0)
    (session,) = (await server.call("GET", "/api/sessions"))["sessions"]
    assert session["createdAt"] == saved["createdAt"]
