"""The page shows which agents have no login and how to log in, and opens the login command in a terminal."""

import json
from pathlib import Path

from playwright.async_api import BrowserContext, expect

from support.pages import login_url
from support.scripted_agent.command import scripted_command
from support.server import Server

LOGIN_COMMAND = ["sh", "-c", "mkdir -p ~/.closed && echo key > ~/.closed/auth.json && echo welcome"]


async def define_agent_without_login(server: Server) -> Path:
    """Define an agent that starts no session before a login. Return the path of its login sign."""
    script, journal = server.home.parent / "closed.json", server.home.parent / "closed.journal"
    script.write_text(
        json.dumps({"on": {"session/new": [{"do": "error", "code": -32000, "text": "not logged in"}]}})
    )
    body = {
        "name": "Closed",
        "kind": "acp",
        "command": scripted_command(journal, script),
        "state": [f"{server.home.parent}/"],  # of the journal
        "loginCommand": LOGIN_COMMAND,
        "login": {"files": ["~/.closed/auth.json"]},
    }
    await server.call("PUT", "/api/agents/closed", 200, json=body)
    return server.workspace / ".closed" / "auth.json"


async def test_the_page_shows_at_an_agent_that_no_login_was_found(
    visitor: BrowserContext, server: Server
) -> None:
    login_sign = await define_agent_without_login(server)
    page = await visitor.new_page()
    await page.goto(await login_url(server))
    agent_item = page.get_by_role("listitem").filter(has_text="Closed")
    await expect(agent_item).to_contain_text("no login found")
    await expect(agent_item).to_contain_text("To log in to Closed, run sh -c")
    await expect(page.get_by_role("listitem").filter(has_text="Demo")).not_to_contain_text("login")

    await page.get_by_label("Agent").select_option(label="Closed")
    group = page.locator("optgroup[label='Installed, no login found']")
    await expect(group).to_have_text("Closed")
    form = page.locator("form").filter(has=page.get_by_label("Prompt"))
    await expect(form).to_contain_text("You can start it anyway")
    await expect(page.get_by_role("button", name="New agent")).to_be_enabled()

    login_sign.parent.mkdir()
    login_sign.write_text("key")
    await page.get_by_role("button", name="Check again").click()
    await expect(agent_item).to_contain_text("logged in")
    await expect(page.get_by_text("no login found")).to_have_count(0)
    await expect(group).to_have_count(0)
    assert await page.evaluate("window.violations") == []


async def test_after_a_failure_without_a_login_the_page_opens_the_login_command_in_a_terminal(
    device: BrowserContext, server: Server
) -> None:
    login_sign = await define_agent_without_login(server)
    session = await server.new_session(agentId="closed")
    page = await device.new_page()
    await page.goto(f"{server.url}/#/session/{session['id']}")
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("tab", name="Log in to Closed")).to_have_attribute("aria-selected", "true")
    await expect(page.locator(".xterm-rows, .xterm-accessibility").first).to_contain_text("welcome")
    assert login_sign.read_text() == "key\n"
