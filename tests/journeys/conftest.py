"""Fixtures: a private PostgreSQL cluster and a browser profile."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import BrowserContext, expect

from support.browser import chromium
from support.databases import cluster
from support.page_errors import no_uncaught_errors
from support.pages import new_profile

__all__ = ["cluster"]

expect.set_options(timeout=60_000)  # a deadline, not a measurement: the machine may be busy


@pytest.fixture
async def profile() -> AsyncIterator[BrowserContext]:
    """Return a new profile of Chromium. Fail the test if one of its pages had an uncaught error."""
    async with chromium() as browser:
        with no_uncaught_errors():
            yield await new_profile(browser)
