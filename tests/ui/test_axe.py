"""No view has an accessibility violation, text of low contrast or the word "worker", on desktop and phone."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from support.contrast import low_contrasts
from support.page_content import PageContent
from support.page_errors import watch_errors
from support.page_views import PhoneViewNavigator, ViewNavigator
from support.pages import login_url
from support.server import Server

AXE = Path(__file__).parents[2] / "ui/node_modules/axe-core/axe.min.js"
# A menu is no landmark and is outside of all landmarks, but it has the focus while it is open. Large text has
# the same minimum contrast as small text.
CONFIGURE = """
    axe.configure({checks: [
      {id: 'region', options: {regionMatcher: 'dialog, [role=dialog], [role=alertdialog], [role=menu], svg'}},
      {id: 'color-contrast', options: {contrastRatio: {normal: {expected: 4.5}, large: {expected: 4.5}}}},
    ]})
"""
DEVICES: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1200, "height": 800}, "color_scheme": "light"},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "color_scheme": "dark",
        "is_mobile": True,
        "has_touch": True,
    },
}
THEMES = "document.documentElement.dataset.theme === 'dark' ? ['dark', 'light'] : ['light', 'dark']"
Findings = dict[str, list[str]]


@pytest.mark.long
@pytest.mark.parametrize("device", DEVICES)
async def test_axe_finds_no_violation(browser: Browser, workspace: Path, server: Server, device: str) -> None:
    # Without animations: text that fades in has too little contrast.
    profile = await browser.new_context(reduced_motion="reduce", **DEVICES[device])
    watch_errors(profile)
    await profile.add_init_script(AXE.read_text() + CONFIGURE)
    page = await profile.new_page()
    found = await find_in_views_without_sessions(page, server)
    content = await PageContent.create(workspace, server)
    await content.add_records()
    await page.reload()
    views = PhoneViewNavigator(page, content) if device == "phone" else ViewNavigator(page, content)
    for name, open_view in views.all().items():
        await open_view()
        found |= await violations(page, name)
    guest = await profile.new_page()
    await guest.goto(await content.share_link())
    await expect(guest.get_by_role("log")).to_contain_text("It is a")
    found |= await violations(guest, "guest")
    assert found == {}, json.dumps(found, indent=1)


async def find_in_views_without_sessions(page: Page, server: Server) -> Findings:
    await page.goto(server.url)
    await expect(page.get_by_role("heading")).to_have_text("This browser is not logged in")
    found = await violations(page, "not logged in")
    await page.goto(await login_url(server))
    await expect(page.get_by_role("heading", name="Welcome to Bullpen")).to_be_visible()
    return found | await violations(page, "welcome")


async def violations(page: Page, view: str) -> Findings:
    """Return the violations of a view. The other theme differs in its colours only, which are measured."""
    theme, other = await page.evaluate(THEMES)
    found = await run_axe(page, view) | await measure(page, f"{theme} {view}") | await find_words(page, view)
    await page.emulate_media(color_scheme=other)  # the next view is opened in this theme
    await expect(page.locator(":root")).to_have_attribute("data-theme", other)
    found |= await measure(page, f"{other} {view}")
    width = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found | ({f"{view}: wider than the page": [f"{width} pixels"]} if width > 0 else {})


async def find_words(page: Page, view: str) -> Findings:
    """Return the lines of a view with a word that users do not know."""
    lines = (await page.locator("body").inner_text()).splitlines()
    if found := [line[:200] for line in lines if re.search(r"\bworkers?\b", line, re.IGNORECASE)]:
        return {f"{view}: says worker": found}
    return {}


async def measure(page: Page, view: str) -> Findings:
    low = await low_contrasts(page)
    return {f"{view}: contrast": low} if low else {}


async def run_axe(page: Page, view: str) -> Findings:
    results = await page.evaluate("axe.run(document, {reporter: 'no-passes'})")
    return {
        f"{view}: {each['id']} ({each['impact']}): {each['help']}": [
            node["html"][:200] for node in each["nodes"][:4]
        ]
        for each in results["violations"]
    }
