"""Fixtures: a private PostgreSQL cluster and a browser profile."""

import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import BrowserContext, async_playwright, expect

from support.databases import cluster
from support.page_errors import no_uncaught_errors
from support.pages import new_profile

__all__ = ["cluster"]

expect.set_options(timeout=60_000)  # a deadline, not a measurement: the machine may be busy


@pytest.fixture
async def profile() -> AsyncIterator[BrowserContext]:
    """Return a new profile of Chromium. Fail the test if one of its pages had an uncaught error."""
    path = shutil.which("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        with no_uncaught_errors():
            yield await new_profile(browser)
        await browser.close()
