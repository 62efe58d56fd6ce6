"""The page shows times and failures once, with the same text in every view."""

import re

from playwright.async_api import BrowserContext, expect

from support.chat_page import ChatPage
from support.server import Server
from support.session_client import SessionClient


async def test_the_waiting_time_counts_from_the_permission_that_is_open(chat: ChatPage) -> None:
    await chat.send_message("[[permission title=first]] [[permission title=second]]")
    await expect(chat.log).to_contain_text(re.compile(r"Waiting for you for [4-9] s"))
    await chat.permission_card.get_by_role("button", name="Allow", exact=True).click()
    await expect(chat.page.get_by_role("region", name="Permission: second")).to_be_visible()
    await expect(chat.log).to_contain_text(re.compile(r"Waiting for you for [0-3] s"), timeout=4000)


async def test_the_session_reports_a_crash_once_with_the_name_of_the_agent(
    device: BrowserContext, server: Server
) -> None:
    chat = await ChatPage.at(device, await SessionClient.begin(server, "demo", title="Falls over"))
    await chat.send_message("crash")
    message = chat.page.get_by_role("main").get_by_text("exit code 3")
    await expect(message).to_have_text("Demo crashed (exit code 3)")
    await expect(chat.page.get_by_role("button", name="Try again in a new session")).to_be_visible()
    await expect(message).to_have_count(1)


async def test_the_inbox_reports_a_crash_once_with_the_name_of_the_agent(
    device: BrowserContext, server: Server
) -> None:
    talk = await SessionClient.begin(server, "demo", title="Falls over")
    page = await device.new_page()
    await page.goto(f"{server.url}/#/inbox")
    await expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    await talk.prompt("crash")
    await talk.wait_for_event("worker_failed")
    await expect(page.get_by_role("article")).to_have_count(1)
    await expect(page.get_by_role("article")).to_contain_text("Demo crashed (exit code 3)")
