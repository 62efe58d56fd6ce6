"""The page shows what runs may do, offers to allow what was refused, and lists what was allowed."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, Locator, Page, expect

from support.chat_page import ChatPage
from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Return a file outside the workspace roots."""
    file = tmp_path / "notes.txt"
    file.write_text("hello")
    return file


def ask_for(path: Path) -> str:
    """Return the prompt with which the scripted agent reads a file through the server."""
    return f"[[ask method=fs/read_text_file 'params={json.dumps({'path': str(path)})}']]"


async def refused_session(server: Server, path: Path) -> SessionClient:
    """Create a session in a repository whose agent was refused a file."""
    await define_scripted(server)
    shop = Repo(server.workspace / "shop").path
    repository = await server.call("POST", "/api/repositories", 201, json={"path": str(shop)})
    client = await SessionClient.begin(server, repoId=repository["id"], locationPath=str(shop), title="Read")
    await client.run_turn(ask_for(path))
    return client


async def test_a_refused_file_is_allowed_for_the_repository_and_removed_in_the_settings(
    device: BrowserContext, server: Server, notes: Path
) -> None:
    client = await refused_session(server, notes)
    chat = await ChatPage.at(device, client)
    bar = chat.page.get_by_role("region", name="Refused by the sandbox")
    await expect(bar).to_contain_text(f"Scripted may not read {notes}")
    await expect(chat.log).to_contain_text(f"The sandbox: Scripted may not read {notes}.")
    await bar.get_by_role("button", name="Allow reading for shop").click()
    await expect(bar).to_have_count(0)
    assert (await client.run_turn(ask_for(notes)))["data"]["stopReason"] == "end_turn"

    await chat.page.goto(f"{server.url}/#/settings/sandbox")
    row = chat.page.get_by_role("listitem").filter(has_text=f"May read {notes}")
    await expect(row).to_contain_text("sessions of shop")
    await row.get_by_role("button", name=f"Do not allow {notes} any more").click()
    await expect(chat.page.get_by_text("Nothing is allowed beside the levels.")).to_be_visible()
    assert (await client.run_turn(ask_for(notes)))["data"]["stopReason"] == "error"


async def test_a_refusal_stays_in_the_inbox_until_it_is_decided(
    device: BrowserContext, server: Server, notes: Path
) -> None:
    client = await refused_session(server, notes)
    chat = await ChatPage.at(device, client)  # to look at the session decides nothing
    page = chat.page
    await expect(page.get_by_role("region", name="Refused by the sandbox")).to_be_visible()
    await page.goto(f"{server.url}/#/inbox")
    card = page.get_by_role("article", name="Refused: Read")
    await expect(card.get_by_role("button", name="Allow reading for shop")).to_be_visible()
    await card.get_by_role("button", name="Keep refusing").click()
    await expect(card).to_have_count(0)
    await client.run_turn(ask_for(notes))
    await page.goto(f"{server.url}/#/session/{client.id}")
    await expect(page.get_by_text(f"Scripted may not read {notes}")).to_have_count(2)
    await expect(page.get_by_role("region", name="Refused by the sandbox")).to_have_count(0)


async def test_a_host_and_a_path_are_allowed_in_the_settings(
    device: BrowserContext, server: Server, tmp_path: Path
) -> None:
    page = await device.new_page()
    await page.goto(f"{server.url}/#/settings/sandbox")
    await page.get_by_role("textbox", name="Host").fill("not a host")
    await page.get_by_role("button", name="Allow", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("is not a host")
    await page.get_by_role("textbox", name="Host").fill(".example.org")
    await page.get_by_role("button", name="Allow", exact=True).click()
    await expect(page.get_by_text("May reach .example.org")).to_be_visible()
    await page.get_by_label("Agents may").select_option("write")
    await page.get_by_role("textbox", name="Path").fill(str(tmp_path))
    await page.get_by_role("button", name="Allow", exact=True).click()
    await expect(page.get_by_text(f"May write {tmp_path}")).to_be_visible()
    grants = (await server.call("GET", "/api/sandbox/grants"))["grants"]
    assert [(each["kind"], each["target"], each["repoId"]) for each in grants] == [
        ("host", ".example.org", None),
        ("write", str(tmp_path), None),
    ]


async def test_the_details_say_what_an_agent_and_a_terminal_can_do(
    device: BrowserContext, server: Server
) -> None:
    await define_scripted(server)
    client = await SessionClient.begin(server, sandbox="sealed")
    terminal = await server.new_terminal(client.id)
    grant = {"kind": "host", "target": "pypi.example.org"}
    await server.call("PUT", "/api/sandbox/grants", 200, json=grant)
    chat = await ChatPage.at(device, client)
    details = await show_details(chat.page)
    await expect(details).to_contain_text("Sandbox of Scripted")
    await expect(details).to_contain_text("sealed: writes its workspace, reaches only allowed hosts")
    await expect(details).to_contain_text("Enforced by bubblewrap")
    await expect(details).to_contain_text("Only pypi.example.org")
    workspace = str(server.workspace)
    writable = details.locator("details").filter(has_text="Can write")
    await expect(writable.get_by_role("listitem").first).to_have_text(workspace)
    await details.get_by_text("Cannot see").click()
    await expect(details.get_by_text(str(server.home), exact=True)).to_be_visible()

    await chat.page.get_by_role("tab", name=terminal["name"]).click()
    await expect(details).to_contain_text(f"Sandbox of {terminal['name']}")
    await expect(details).to_contain_text("open: no sandbox, accesses all that you can")
    await expect(details.get_by_text("Can write")).to_have_count(0)


async def show_details(page: Page) -> Locator:
    await page.get_by_role("button", name="Show the panel").click()
    await page.get_by_role("tab", name="Details").click()
    return page.get_by_role("complementary", name="Details")


async def test_a_session_without_a_sandbox_is_started_in_the_form_and_says_so(
    device: BrowserContext, server: Server
) -> None:
    page = await device.new_page()
    await page.goto(server.url)
    await page.get_by_label("Prompt").fill("hello")
    await page.get_by_text("Sandbox", exact=True).click()
    choice = page.get_by_label("Sandbox level")
    await expect(choice.locator("option").first).to_have_text("As usual (workspace)")
    await choice.select_option("open")
    await page.reload()  # the form keeps the choice, and shows it
    await expect(choice).to_have_value("open")
    await page.get_by_role("button", name="Start", exact=True).click()
    await expect(page.locator("header").get_by_text("no sandbox")).to_be_visible()
    listed = page.get_by_role("navigation", name="Sessions")
    await expect(listed.get_by_role("link", name="hello")).to_contain_text("no sandbox")
    await page.goto(f"{server.url}/#/")
    await expect(page.get_by_text("Sandbox", exact=True)).to_be_visible()
    await expect(choice).to_be_hidden()  # the next session has the usual level
    await page.get_by_label("Prompt").fill("bye")
    await page.get_by_role("button", name="Start", exact=True).click()
    await expect(page.get_by_role("log")).to_contain_text("You said: bye")
    await expect(page.locator("header").get_by_text("no sandbox")).to_have_count(0)
    levels = {
        each["title"]: each["sandbox"] for each in (await server.call("GET", "/api/sessions"))["sessions"]
    }
    assert levels == {"hello": "open", "bye": None}


@pytest.mark.own_server
async def test_a_machine_without_bubblewrap_says_what_is_weaker_and_what_to_install(
    device: BrowserContext, server: Server, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("env", "true", "sh", "git"):
        (programs / name).symlink_to(os.path.realpath(shutil.which(name) or name))
    server.set(PATH=str(programs))
    await server.restart()
    page = await device.new_page()
    await page.goto(server.url)
    line = page.get_by_text(re.compile(r"weaker sandbox \(Landlock\): bubblewrap is not installed"))
    await expect(line).to_contain_text("sudo apt install bubblewrap")
    await expect(page.get_by_role("heading", name="Welcome to Bullpen")).to_be_visible()
    await page.get_by_text("Sandbox", exact=True).click()
    choice = page.get_by_label("Sandbox level")
    await expect(choice.locator("option", has_text="sealed")).to_be_disabled()
    await page.goto(f"{server.url}/#/settings/sandbox")
    await expect(page.get_by_text("landlock does not protect everything")).to_be_visible()
    await expect(page.get_by_text("the directory /tmp is shared")).to_be_visible()
