"""A newcomer gets from the printed address to an approved change and its diff in few actions."""

from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from support.browser import chromium
from support.page_errors import no_uncaught_errors
from support.pages import login_url, new_profile
from support.repositories import Repo
from support.server import Server

MAX_ACTIONS = 10  # besides typing the prompt
SECONDS = 60.0


class CountingUser:
    """Counts the actions of a user: each click, key and page load."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.actions = 0

    async def act(self, action: Awaitable[object]) -> None:
        self.actions += 1
        await action

    async def click(self, name: str, role: str = "button") -> None:
        await self.act(self.page.get_by_role(role, name=name, exact=True).click())  # type: ignore[arg-type]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A server with default settings, and a home directory with a project that Bullpen does not know yet."""
    home = tmp_path / "ada"
    Repo(home / "code/atlas")
    server = Server(home / ".local/share/bullpen", home, {"AGENT_WORKSPACE_ROOT": ""})
    server.home.mkdir(parents=True)
    await server.start()
    yield server
    await server.close()


async def test_a_newcomer_adds_a_project_approves_a_change_and_sees_its_diff_in_10_actions(
    server: Server,
) -> None:
    project = server.workspace / "code/atlas"
    with no_uncaught_errors():
        async with chromium() as browser:
            page = await (await new_profile(browser)).new_page()
            page.set_default_timeout(SECONDS * 1000)
            expect.set_options(timeout=SECONDS * 1000)
            user = CountingUser(page)

            await user.act(page.goto(await login_url(server)))
            await expect(page.get_by_role("heading").nth(1)).to_have_text("Add a project")
            await user.click("Add atlas")
            await user.click("Allow")
            await expect(page.get_by_role("radio", name="atlas")).to_be_checked()
            await expect(page.get_by_role("checkbox", name="In a worktree of its own")).to_be_checked()
            await expect(page.get_by_label("Prompt")).to_be_focused()
            await page.keyboard.type("edit notes.md")
            await user.click("Start")

            card = page.get_by_role("region", name="Permission")
            await expect(card).to_contain_text("The demo agent was here (1).")
            await user.click("Allow")
            await expect(page.get_by_role("log")).to_contain_text("I have added a line to notes.md")
            await user.click("Show the panel")
            await user.click("Changes", role="tab")
            changes = page.get_by_role("complementary", name="Changes")
            await user.act(changes.get_by_role("button", name="notes.md").click())
            diff = page.get_by_role("region", name="notes.md", exact=True)
            await expect(diff).to_contain_text("The demo agent was here (1).")

            assert await page.evaluate("window.violations") == []
    assert user.actions <= MAX_ACTIONS
    assert not (project / "notes.md").exists()
    [worktree] = (project.parent / "atlas.worktrees").iterdir()
    assert "demo agent" in (worktree / "notes.md").read_text()
