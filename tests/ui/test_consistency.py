"""The page shows times and failures once, with the same text in every view."""

import re
from datetime import datetime, timedelta

import pytest
from playwright.async_api import BrowserContext, expect

from support.chat_page import ChatPage
from support.server import Server
from support.session_client import SessionClient

# The age of a permission, as the list of sessions and the chat show it.
AGES = [
    (timedelta(seconds=50), "now", "just now"),
    (timedelta(seconds=100), "1 min", "1 min ago"),
    (timedelta(hours=3, minutes=40), "3 h", "3 h ago"),
]


async def test_the_waiting_time_counts_from_the_permission_that_is_open(chat: ChatPage) -> None:
    await chat.send_message("[[permission title=first]] [[permission title=second]]")
    await expect(chat.log).to_contain_text(re.compile(r"Waiting for you for [4-9] s"))
    await chat.permission_card.get_by_role("button", name="Allow", exact=True).click()
    await expect(chat.page.get_by_role("region", name="Permission: second")).to_be_visible()
    await expect(chat.log).to_contain_text(re.compile(r"Waiting for you for [0-3] s"), timeout=4000)


@pytest.mark.parametrize("answered_before", [False, True])  # an agent that never answered ends its session
async def test_the_session_reports_a_crash_once_with_the_name_of_the_agent(
    device: BrowserContext, server: Server, answered_before: bool
) -> None:
    talk = await SessionClient.begin(server, "demo", title="Falls over")
    if answered_before:
        await talk.run_turn("help")
    chat = await ChatPage.at(device, talk)
    await chat.send_message("crash")
    message = chat.page.get_by_role("main").get_by_text("exit code 3")
    await expect(message).to_have_text("Demo crashed (exit code 3)")
    name = "Start again" if answered_before else "Try again in a new session"
    await expect(chat.page.get_by_role("button", name=name)).to_be_visible()
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


@pytest.mark.own_server
async def test_the_age_of_a_permission_is_the_same_in_the_chat_and_in_the_list_of_sessions(
    chat: ChatPage,
) -> None:
    await chat.send_message("[[permission title=delete]]")
    shown = chat.permission_card.locator("time")
    sessions = chat.page.get_by_role("navigation", name="Sessions")
    asked_at = datetime.fromisoformat(await shown.get_attribute("datetime") or "")
    for age, in_list, in_chat in AGES:
        await chat.page.clock.set_fixed_time(asked_at + age)
        await chat.page.reload()
        await expect(shown).to_have_text(in_chat)
        await expect(sessions.locator("time")).to_have_text(in_list)


@pytest.mark.intervals(heartbeat=3600.0)  # no heartbeat is sent during the test
async def test_all_connections_of_a_page_are_restored_together(
    device: BrowserContext, server: Server
) -> None:
    page = await device.new_page()
    await page.clock.install()
    session = await server.new_session()
    await server.new_terminal(session["id"])
    await page.goto(f"{server.url}/#/session/{session['id']}")
    light = page.get_by_role("button", name="Connection:")
    terminal = page.get_by_role("tabpanel").get_by_text(re.compile(r"^\W*connected"))
    await expect(light).to_contain_text("Connected")
    await expect(terminal).to_be_visible()
    await server.kill()
    await expect(light).to_contain_text("Reconnecting")
    await expect(terminal).to_have_count(0)
    # From here on the time of the page advances only below, so each connection waits for its own attempt.
    await page.clock.pause_at(datetime.now() + timedelta(minutes=1))
    await server.start()
    attempts: list[str] = []
    page.on("websocket", lambda socket: attempts.append(socket.url))
    while not attempts:
        await page.clock.run_for(20)
    await expect(light).to_contain_text("Connected")
    await expect(terminal).to_be_visible()
