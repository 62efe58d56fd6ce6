"""A real Chromium, and a page of it that is logged in to a real server."""

import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, BrowserContext, async_playwright, expect

from support.chat_page import ChatPage
from support.pages import login_url, new_profile
from support.server import Server
from support.talk import Talk, define_scripted

expect.set_options(timeout=20_000)  # a deadline, not a measurement: the machine may be busy


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    chromium = shutil.which("chromium")
    assert chromium, "chromium is missing; run scripts/test-tools"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest.fixture
async def visitor(browser: Browser) -> BrowserContext:
    """A browser profile nobody has logged in with."""
    return await new_profile(browser)


@pytest.fixture
async def device(visitor: BrowserContext, server: Server) -> BrowserContext:
    """A browser profile that has used a login code."""
    page = await visitor.new_page()
    await page.goto(await login_url(server))
    await page.get_by_role("button", name="New session").wait_for()
    await page.close()
    return visitor


@pytest.fixture
async def chat(device: BrowserContext, server: Server) -> ChatPage:
    await define_scripted(server)
    return await ChatPage.at(device, await Talk.begin(server))
