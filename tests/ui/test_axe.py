"""axe-core finds no accessibility violation in any main view: on a desktop or a phone, light or dark."""

import json
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from support.page_errors import watch_errors
from support.page_views import PhoneViewNavigator, ViewNavigator, begin_session_for_views
from support.pages import login_url
from support.server import Server
from support.session_client import SessionClient

AXE = Path(__file__).parents[2] / "ui/node_modules/axe-core/axe.min.js"
# A menu is no landmark and is outside of all landmarks, but it has the focus while it is open.
ACCEPT_MENUS_AS_REGIONS = """
    axe.configure({checks: [{id: 'region', options: {
      regionMatcher: 'dialog, [role=dialog], [role=alertdialog], [role=menu], svg'}}]})
"""
DEVICES: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1200, "height": 800}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}


@pytest_asyncio.fixture(loop_scope="session")
async def talk(workspace: Path, server: Server) -> SessionClient:
    return await begin_session_for_views(workspace, server)


@pytest.mark.parametrize("device", DEVICES)
async def test_axe_finds_no_violation(browser: Browser, talk: SessionClient, device: str) -> None:
    profile = await browser.new_context(  # without animations: text that fades in has too little contrast
        color_scheme="light", reduced_motion="reduce", **DEVICES[device]
    )
    watch_errors(profile)
    await profile.add_init_script(AXE.read_text() + ACCEPT_MENUS_AS_REGIONS)
    page = await profile.new_page()
    await page.goto(await login_url(talk.server))
    views = PhoneViewNavigator(page, talk) if device == "phone" else ViewNavigator(page, talk)
    found: dict[str, list[str]] = {}
    for name, open_view in views.all().items():
        await open_view()
        found |= await violations(page, name)
    assert found == {}, json.dumps(found, indent=1)


async def violations(page: Page, view: str) -> dict[str, list[str]]:
    """Return the violations of a view in light and dark. The dark page differs in its colours only."""
    found = await run_axe(page, f"light {view}", {})
    await page.emulate_media(color_scheme="dark")
    await expect(page.locator(":root")).to_have_attribute("data-theme", "dark")
    found |= await run_axe(page, f"dark {view}", {"runOnly": ["color-contrast"]})
    await page.emulate_media(color_scheme="light")
    await expect(page.locator(":root")).to_have_attribute("data-theme", "light")
    return found


async def run_axe(page: Page, view: str, options: dict[str, Any]) -> dict[str, list[str]]:
    results = await page.evaluate(
        "(options) => axe.run(document, options)", {"resultTypes": ["violations"], **options}
    )
    return {
        f"{view}: {each['id']} ({each['impact']}): {each['help']}": [
            node["html"][:200] for node in each["nodes"][:4]
        ]
        for each in results["violations"]
    }
