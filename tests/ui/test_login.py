"""Who gets in by the page, and what the others are told."""

from playwright.async_api import Browser, BrowserContext, expect

from support.pages import login_url, new_profile
from support.server import Server


async def test_a_browser_without_a_login_is_told_how_to_get_one(
    visitor: BrowserContext, server: Server
) -> None:
    page = await visitor.new_page()
    await page.goto(server.url)
    await expect(page.get_by_role("heading")).to_have_text("This browser is not logged in")
    await expect(page.get_by_text("bullpen url")).to_be_visible()


async def test_the_printed_address_lets_a_browser_in_for_good(
    visitor: BrowserContext, server: Server
) -> None:
    page = await visitor.new_page()
    await page.goto(await login_url(server))
    await expect(page.get_by_role("button", name="New terminal")).to_be_visible()
    assert "code" not in page.url
    await page.goto(server.url)
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


async def test_a_cookie_without_the_secret_does_not_let_in(device: BrowserContext, server: Server) -> None:
    page = await device.new_page()
    await page.goto(server.url)
    await page.evaluate("localStorage.clear()")
    await page.reload()
    await expect(page.get_by_role("heading")).to_have_text("This browser is not logged in")
