"""Login of a browser by the page, and what a browser without a login is shown."""

from playwright.async_api import Browser, BrowserContext, expect

from support.pages import login_url, new_profile
from support.server import Server


async def test_a_browser_without_a_login_is_shown_how_to_log_in(
    visitor: BrowserContext, server: Server
) -> None:
    page = await visitor.new_page()
    await page.goto(server.url)
    await expect(page.get_by_role("heading")).to_have_text("This browser is not logged in")
    await expect(page.get_by_text("bullpen url")).to_be_visible()


async def test_the_printed_address_logs_in_a_browser_permanently(
    visitor: BrowserContext, server: Server
) -> None:
    page = await visitor.new_page()
    await page.goto(await login_url(server))
    await expect(page.get_by_role("button", name="New terminal")).to_be_visible()
    assert "code" not in page.url
    await page.goto(server.url)
    await expect(page.get_by_role("button", name="New terminal")).to_be_visible()


async def test_the_printed_address_logs_in_the_tab_that_said_how_to_log_in(
    visitor: BrowserContext, server: Server
) -> None:
    page = await visitor.new_page()
    await page.goto(server.url)
    await expect(page.get_by_role("heading")).to_have_text("This browser is not logged in")
    await page.goto(await login_url(server))  # only the fragment of the address changes
    await expect(page.get_by_role("button", name="New terminal")).to_be_visible()


async def test_a_code_works_once(visitor: BrowserContext, browser: Browser, server: Server) -> None:
    url = await login_url(server)
    page = await visitor.new_page()
    await page.goto(url)
    await expect(page.get_by_role("button", name="New terminal")).to_be_visible()
    other = await (await new_profile(browser)).new_page()
    await other.goto(url)
    await expect(other.get_by_role("heading")).to_have_text("This browser is not logged in")
    await expect(other.get_by_role("alert")).not_to_be_empty()


async def test_a_cookie_without_the_second_secret_is_not_a_login(
    device: BrowserContext, server: Server
) -> None:
    page = await device.new_page()
    await page.goto(server.url)
    await page.evaluate("localStorage.clear()")
    await page.reload()
    await expect(page.get_by_role("heading")).to_have_text("This browser is not logged in")
