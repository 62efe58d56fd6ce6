"""The watch that fails a test when one of its pages had an uncaught error."""

import pytest
from playwright.async_api import BrowserContext, expect

from support.page_errors import take_errors
from support.server import Server

SCRIPTS = {  # by the message of their error
    "thrown by a timer": "setTimeout(() => { throw new Error('thrown by a timer') })",
    "rejected by a promise": "void Promise.reject(new Error('rejected by a promise'))",
    "logged by a library": "console.error('Uncaught', new Error('logged by a library'))",
}


@pytest.mark.parametrize("message", SCRIPTS)
async def test_an_uncaught_error_of_any_page_is_recorded(
    device: BrowserContext, server: Server, message: str
) -> None:
    page = await device.new_page()
    await page.goto(server.url)
    await expect(page.get_by_role("button", name="New session")).to_be_visible()
    await page.evaluate(f"() => {{ {SCRIPTS[message]}; return new Promise(done => setTimeout(done)) }}")
    await page.title()  # events arrive in order: the error is reported before this answer
    (error,) = take_errors()
    assert message in error
