"""Start the Chromium of the tests."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

# Chromium without windows and notifications: the same engine, at a third of the CPU time.
HEADLESS_SHELL = "chromium-headless-shell"
# One process for all pages takes less CPU time than one for each profile and site.
ARGUMENTS = ("--no-sandbox", "--renderer-process-limit=1", "--disable-site-isolation-trials")


@asynccontextmanager
async def chromium(program: str = HEADLESS_SHELL) -> AsyncIterator[Browser]:
    """Start a browser for the block."""
    path = shutil.which(program)
    assert path, f"{program} is missing; run scripts/test-tools"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        await browser.close()
