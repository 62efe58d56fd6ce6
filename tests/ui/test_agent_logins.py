"""The page says quietly where no login was found, what to run, and opens it where an agent failed for it."""

import json
import sys
from pathlib import Path

from playwright.async_api import BrowserContext, expect

from support.pages import login_url
from support.server import Server
from support.session_client import SCRIPTED_AGENT

COMMAND = ["sh", "-c", "mkdir -p ~/.closed && echo key > ~/.closed/auth.json && echo welcome"]


async def define_closed(server: Server) -> Path:
    """An agent that lets nobody in before a login; returns what that leaves."""
    script, journal = server.home.parent / "closed.json", server.home.parent / "closed.journal"
    script.write_text(json.dumps({"on": {"session/new": [{"do": "error", "code": -32000, "text": "who?"}]}}))
    body = {
        "name": "Closed",
        "kind": "acp",
        "command": [sys.executable, str(SCRIPTED_AGENT), "--journal", str(journal), "--script", str(script)],
        "loginCommand": COMMAND,
        "login": {"files": ["~/.closed/auth.json"]},
    }
    await server.call("PUT", "/api/agents/closed", 200, json=body)
    return server.workspace / ".closed" / "auth.json"


async def test_an_agent_without_a_login_says_so_where_it_is_offered(
    visitor: BrowserContext, server: Server
) -> None:
    sign = await define_closed(server)
    page = await visitor.new_page()
    await page.goto(await login_url(server))
    listed = page.get_by_role("listitem").filter(has_text="Closed")
    await expect(listed).to_contain_text("no login found")
    await expect(listed).to_contain_text("To log in to Closed, run sh -c")
    await expect(page.get_by_role("listitem").filter(has_text="Demo")).not_to_contain_text("login")

    await page.get_by_label("Agent").select_option(label="Closed (no login found)")
    form = page.locator("form").filter(has=page.get_by_label("Prompt"))
    await expect(form).to_contain_text("You can start it anyway")
    await expect(page.get_by_role("button", name="New agent")).to_be_enabled()

    sign.parent.mkdir()
    sign.write_text("key")
    await page.get_by_role("button", name="Check again").click()
    await expect(listed).to_contain_text("logged in")
    await expect(page.get_by_text("no login found")).to_have_count(0)
    assert await page.evaluate("window.violations") == []


async def test_who_failed_for_want_of_a_login_is_logged_in_to_in_a_terminal(
    device: BrowserContext, server: Server
) -> None:
    sign = await define_closed(server)
    session = await server.new_session(agentId="closed")
    page = await device.new_page()
    await page.goto(f"{server.url}/#/session/{session['id']}")
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("tab", name="Log in to Closed")).to_have_attribute("aria-selected", "true")
    await expect(page.locator(".xterm-rows, .xterm-accessibility").first).to_contain_text("welcome")
    assert sign.read_text() == "key\n"
