"""Open every view of the page, with sessions that have content for each of them."""

from collections.abc import Awaitable, Callable
from functools import partial

from playwright.async_api import Page, expect

from support.page_content import COLORS, PageContent
from support.pages import TerminalPage

SETTINGS = (
    *("appearance", "keys", "notifications", "agents", "rules", "sandbox", "repositories"),
    *("worktrees", "shares", "devices", "tokens", "transfer"),
)
BLUR_FIELD = "document.activeElement?.closest('.chat, .xterm') && document.activeElement.blur()"


class ViewNavigator:
    """Opens the views of the page; each public method opens one and waits until it is shown."""

    names: tuple[str, ...] = (
        *(
            "home",
            "sandbox_choice",
            "add_project",
            "new_session",
            "refused",
            "chat",
            "queue",
            "changes",
            "diff",
            "files",
            "file",
        ),
        *("plan", "details", "preview", "menu", "new_tab", "share", "export", "rename", "question", "failed"),
        *("terminal", "replay", "mention", "inbox", "search", "usage", "palette", "help", "missing"),
        *("archived", "confirmation", "sandbox_refusal"),
    )

    def __init__(self, page: Page, content: PageContent) -> None:
        self._page = page
        self._content = content
        self._session = content.talk

    def all(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the methods by view, in an order in which each can follow the one before."""
        settings = {section: partial(self.settings, section) for section in SETTINGS}
        return {name: getattr(self, name) for name in self.names} | settings | {"undo": self.undo}

    async def home(self) -> None:
        await self._show("")
        await expect(self._page.get_by_role("heading", name="Waiting for you")).to_be_visible()

    async def sandbox_choice(self) -> None:
        await self._page.get_by_role("main").get_by_text("Sandbox", exact=True).click()
        await expect(self._page.get_by_label("Sandbox level")).to_be_visible()

    async def add_project(self) -> None:
        await self._page.get_by_role("main").get_by_role("button", name="Add a project").click()
        await self._page.get_by_label("Directory, or address").fill(f"{self._content.server.workspace}/")
        await expect(self._page.get_by_role("option").first).to_be_visible()

    async def new_session(self) -> None:
        await self._show("")
        await self._page.get_by_role("button", name="New session").first.click()
        await expect(self._page.get_by_role("dialog", name="New session")).to_be_visible()

    async def refused(self) -> None:
        """The dialog of a new session with a refusal of the server."""
        dialog = self._page.get_by_role("dialog", name="New session")
        await dialog.get_by_role("button", name="Add a project").click()
        await dialog.get_by_label("Directory, or address").fill("/nowhere")
        await self._page.keyboard.press("Enter")
        await expect(dialog.get_by_role("alert")).to_contain_text("outside the workspace root")

    async def chat(self) -> None:
        await self._show_session()
        await expect(self._page.get_by_role("region", name="Permission")).to_be_visible()

    async def queue(self) -> None:
        await self._page.get_by_role("tab", name="Scripted").click()
        await self._page.get_by_label("Message", exact=True).fill("and then this")
        await self._page.get_by_role("button", name="Queue").click()
        await expect(self._page.get_by_role("region", name="Queue").get_by_role("listitem")).to_be_visible()

    async def changes(self) -> None:
        await self.new_tab()
        await self._page.get_by_role("menuitem", name="Changes").click()
        await expect(self._page.get_by_role("region", name="readme.txt")).to_contain_text("world")

    async def diff(self) -> None:
        """The list of changed files, beside the changes of one file."""
        await self._show_panel("Changes")
        changes = self._page.get_by_role("complementary", name="Changes")
        await changes.get_by_role("button", name="readme.txt").click()
        await expect(self._page.get_by_role("region", name="readme.txt")).to_contain_text("world")

    async def files(self) -> None:
        await self._show_panel("Files")
        files = self._page.get_by_role("complementary", name="Files")
        await expect(files.get_by_text("notes.md")).to_be_visible()

    async def file(self) -> None:
        await self._page.get_by_role("treeitem", name="notes.md").click()
        await expect(self._page.get_by_role("dialog", name="notes.md")).to_contain_text("one")

    async def plan(self) -> None:
        await self._close_dialogs()
        await self._show_panel("Plan")
        await expect(self._page.get_by_role("complementary", name="Plan")).to_contain_text("of")

    async def details(self) -> None:
        await self._show_panel("Details")
        details = self._page.get_by_role("complementary", name="Details")
        await expect(details).to_contain_text("Enforced by")
        for folded in ("Can only read in these", "Can read, beside the system", "Cannot see"):
            await details.get_by_text(folded).click()

    async def preview(self) -> None:
        await self._show_panel("Preview")
        await expect(self._page.get_by_role("complementary", name="Preview")).to_be_visible()

    async def menu(self) -> None:
        await self._page.get_by_role("button", name="Session menu").click()
        await expect(self._page.get_by_role("menuitem", name="Replay")).to_be_visible()

    async def new_tab(self) -> None:
        await self._close_dialogs()
        await self._page.get_by_role("button", name="New tab").click()
        await expect(self._page.get_by_role("menuitem", name="New terminal")).to_be_visible()

    async def share(self) -> None:
        await self._show_dialog("Share")

    async def export(self) -> None:
        await self._show_dialog("Export")

    async def rename(self) -> None:
        await self._show_dialog("Rename")

    async def question(self) -> None:
        await self._show(f"session/{self._content.asking.id}")
        await expect(self._page.get_by_role("form", name="Question")).to_be_visible()

    async def failed(self) -> None:
        await self._show(f"session/{self._content.failed.id}")
        await expect(self._page.get_by_role("button", name="Try again in a new session")).to_be_visible()

    async def terminal(self) -> None:
        await self._begin_terminal()
        await expect(self._page.locator(".xterm-rows")).to_contain_text("#")
        await TerminalPage(self._page).run(COLORS)
        await self._wait_for_colors()

    async def replay(self) -> None:
        await self._show_end_of_replay()
        await self._wait_for_colors()

    async def mention(self) -> None:
        await self._show_session()
        await self._page.get_by_role("tab", name="Scripted").click()
        await self._page.get_by_label("Message", exact=True).fill("see @")
        await expect(self._page.get_by_role("option", name="notes.md")).to_be_visible()
        # It is shown until the chat, which a tab has just opened, has scrolled to its end.
        await expect(self._page.get_by_role("button", name="Latest")).to_have_count(0)

    async def inbox(self) -> None:
        await self._show("inbox")
        cards = self._page.get_by_role("main").get_by_role("article")
        await expect(cards.filter(has_text="Seen by axe")).to_be_visible()

    async def search(self) -> None:
        await self._show("search/needle")
        await expect(self._page.get_by_role("main").locator("mark").first).to_be_visible()

    async def usage(self) -> None:
        await self._show("usage")
        await expect(self._page.get_by_role("row", name="Seen by axe")).to_be_visible()

    async def palette(self) -> None:
        await self._page.keyboard.press("Control+K")
        await expect(self._page.get_by_role("combobox", name="Command")).to_be_visible()

    async def help(self) -> None:
        await self._show("")
        await self._page.keyboard.press("Control+/")
        await expect(self._page.get_by_role("dialog", name="Keys")).to_be_visible()

    async def missing(self) -> None:
        await self._show("session/no-such-session")
        await expect(self._page.get_by_text("This session does not exist")).to_be_visible()

    async def archived(self) -> None:
        await self._show(f"session/{self._content.archived.id}")
        await expect(self._page.get_by_role("button", name="Continue")).to_be_visible()

    async def confirmation(self) -> None:
        await self.menu_of_archived()
        await self._page.get_by_role("menuitem", name="Delete permanently").click()
        await expect(self._page.get_by_role("dialog")).to_be_visible()

    async def menu_of_archived(self) -> None:
        await self._page.get_by_role("button", name="Session menu").click()

    async def sandbox_refusal(self) -> None:
        await self._show(f"session/{self._content.refused.id}")
        await expect(self._page.get_by_role("region", name="Refused by the sandbox")).to_be_visible()

    async def settings(self, section: str) -> None:
        await self._show(f"settings/{section}")
        await expect(self._page.locator("main h1, main h2").first).to_be_visible()

    async def undo(self) -> None:
        """A session that is about to be archived, with the button that keeps it."""
        await self._show(f"session/{self._content.asking.id}")
        await self._page.get_by_role("button", name="Session menu").click()
        await self._page.get_by_role("menuitem", name="Archive session").click()
        await expect(self._page.get_by_role("button", name="Undo")).to_be_visible()

    async def _show_dialog(self, name: str) -> None:
        await self._show_session()
        await self.menu()
        await self._page.get_by_role("menuitem", name=name).click()
        await expect(self._page.get_by_role("dialog", name=name)).to_be_visible()

    async def _show_panel(self, name: str) -> None:
        panels = self._page.get_by_role("tablist", name="Panels")
        if not await panels.is_visible():
            await self._page.get_by_role("button", name="Show the panel").click()
        await panels.get_by_role("tab", name=name).click()

    async def _begin_terminal(self) -> None:
        await self._show("")
        await self._page.get_by_role("button", name="New terminal").click()

    async def _wait_for_colors(self) -> None:
        await expect(self._page.locator(".xterm-rows .xterm-fg-15").first).to_be_visible()

    async def _show_end_of_replay(self) -> None:
        await self._show(f"replay/{self._session.id}")
        await self._page.get_by_role("slider", name="Time").press("End")
        await expect(self._page.get_by_role("log")).to_contain_text("It is a")

    async def _show_session(self) -> None:
        await self._show(f"session/{self._session.id}")
        await expect(self._page.get_by_role("heading", name="Seen by axe")).to_be_visible()

    async def _show(self, path: str) -> None:
        await self._close_dialogs()
        await self._page.goto(f"{self._content.server.url}/#/{path}")

    async def _close_dialogs(self) -> None:
        """Close dialogs and menus with Escape, which in a message field would stop the agent."""
        await self._page.evaluate(BLUR_FIELD)
        await self._page.keyboard.press("Escape")
        await expect(self._page.get_by_role("dialog")).to_have_count(0)


class PhoneViewNavigator(ViewNavigator):
    """Opens the views on a phone, which shows one view at a time and opens some of them differently."""

    names = (
        *(
            "home",
            "start",
            "sandbox_choice",
            "add_project",
            "chat",
            "queue",
            "menu",
            "changes",
            "diff",
            "files",
            "file",
        ),
        *("plan", "details", "preview", "new_tab", "share", "export", "rename", "question", "failed"),
        *("terminal", "replay", "past_terminal", "past_changes", "mention", "inbox", "search", "usage"),
        *("palette", "missing", "archived", "confirmation", "sandbox_refusal"),
    )

    async def home(self) -> None:
        await self._show("")
        await expect(self._page.get_by_role("link", name="Seen by axe")).to_be_visible()

    async def start(self) -> None:
        await self._show("new")
        await expect(self._page.get_by_label("Prompt")).to_be_visible()

    async def new_tab(self) -> None:
        await self._close_panel()
        await super().new_tab()

    async def replay(self) -> None:
        await self._show_end_of_replay()

    async def past_terminal(self) -> None:
        await self._page.get_by_role("tab", name="Terminals").click()
        await self._wait_for_colors()

    async def past_changes(self) -> None:
        await self._page.get_by_role("tab", name="Changes").click()
        await expect(self._page.get_by_role("region", name="Changes at this moment")).to_contain_text("world")

    async def palette(self) -> None:
        await self._page.get_by_role("button", name="Search", exact=True).click()
        await expect(self._page.get_by_role("combobox", name="Command")).to_be_visible()

    async def _show_panel(self, name: str) -> None:
        await self._close_panel()
        await self.menu()
        await self._page.get_by_role("menuitem", name=name).click()

    async def _begin_terminal(self) -> None:
        await self._show_session()
        await self.new_tab()
        await self._page.get_by_role("menuitem", name="New terminal").click()

    async def _show_session(self) -> None:
        await self._close_panel()
        await super()._show_session()

    async def _close_panel(self) -> None:
        await self._close_dialogs()
        close = self._page.get_by_role("button", name="Close panel")
        if await close.is_visible():
            await close.click()
