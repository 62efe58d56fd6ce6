"""A network that goes without a word, as a VPN or a NAT may: nothing is closed, and nothing comes."""

import signal

import pytest
from playwright.async_api import BrowserContext, expect

from support.chat_page import ChatPage
from support.pages import log_in
from support.server import Server
from support.session_client import SessionClient, define_scripted

DEADLINE = 60_000
SILENCE = 41_000  # a little longer than the page believes in a heartbeat that does not come


@pytest.fixture
async def device(server: Server, profile: BrowserContext) -> BrowserContext:
    """A browser whose time the test can let pass."""
    profile.set_default_timeout(DEADLINE)
    await profile.clock.install()
    await log_in(profile, server)
    return profile


async def test_the_page_notices_the_silence_says_so_and_comes_back(
    server: Server, device: BrowserContext
) -> None:
    await define_scripted(server)
    chat = await ChatPage.at(device, await SessionClient.begin(server))
    dashboard = chat.page.get_by_role("button", name="Connection:")
    await expect(dashboard).to_contain_text("Connected", timeout=DEADLINE)

    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)  # its sockets stay open, and nobody is behind them
    await chat.page.clock.fast_forward(SILENCE)
    await expect(dashboard).to_contain_text("Reconnecting", timeout=DEADLINE)
    await chat.wait_for_connection("reconnecting")

    server.process.send_signal(signal.SIGCONT)
    await expect(dashboard).to_contain_text("Connected", timeout=DEADLINE)
    await chat.wait_for_connection("connected")
    await chat.talk.run_turn("[[chunk 'heard again']]")
    await expect(chat.log).to_contain_text("heard again", timeout=DEADLINE)
