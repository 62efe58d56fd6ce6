"""A network that fails silently, as with a VPN or NAT: sockets stay open, but no data arrives."""

import signal

import pytest
from playwright.async_api import BrowserContext, expect

from support.chat_page import ChatPage
from support.pages import log_in
from support.server import Server
from support.session_client import SessionClient, define_scripted

DEADLINE_MS = 60_000
SILENCE_MS = 41_000  # a little longer than the page waits for a heartbeat


@pytest.fixture
async def device(server: Server, profile: BrowserContext) -> BrowserContext:
    """Return a browser profile with a clock that the test controls."""
    profile.set_default_timeout(DEADLINE_MS)
    await profile.clock.install()
    await log_in(profile, server)
    return profile


async def test_the_page_shows_that_the_network_is_silent_and_recovers(
    server: Server, device: BrowserContext
) -> None:
    await define_scripted(server)
    chat = await ChatPage.at(device, await SessionClient.begin(server))
    dashboard = chat.page.get_by_role("button", name="Connection:")
    await expect(dashboard).to_contain_text("Connected", timeout=DEADLINE_MS)

    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)  # its sockets stay open, but it does not answer
    await chat.page.clock.fast_forward(SILENCE_MS)
    await expect(dashboard).to_contain_text("Reconnecting", timeout=DEADLINE_MS)
    await chat.wait_for_connection("reconnecting")

    server.process.send_signal(signal.SIGCONT)
    await expect(dashboard).to_contain_text("Connected", timeout=DEADLINE_MS)
    await chat.wait_for_connection("connected")
    await chat.talk.run_turn("[[chunk 'heard again']]")
    await expect(chat.log).to_contain_text("heard again", timeout=DEADLINE_MS)
