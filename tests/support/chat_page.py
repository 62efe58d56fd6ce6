"""A browser page that shows the conversation with one agent, and the actions of a user in it."""

from playwright.async_api import BrowserContext, Locator, Page, expect

from support.session_client import SessionClient


class ChatPage:
    """A browser page at one session with an agent. `talk` is a client of the same session."""

    def __init__(self, page: Page, talk: SessionClient) -> None:
        self.page = page
        self.talk = talk

    @classmethod
    async def at(cls, device: BrowserContext, talk: SessionClient) -> "ChatPage":
        this = cls(await device.new_page(), talk)
        await this.page.goto(f"{talk.server.url}/#/session/{talk.id}")
        await this.wait_for_connection("connected")
        return this

    @property
    def log(self) -> Locator:
        return self.page.get_by_role("log")

    async def send_message(self, text: str) -> None:
        await self.page.get_by_label("Message", exact=True).fill(text)
        await self.page.keyboard.press("Enter")

    @property
    def entries(self) -> Locator:
        """The entries of the conversation that are in the DOM."""
        return self.log.locator("[data-key]")

    @property
    def permission_card(self) -> Locator:
        return self.page.get_by_role("region", name="Permission")

    async def wait_for_connection(self, word: str) -> None:
        """Wait until the footer shows this word about the connection."""
        await expect(self.page.locator("footer").last).to_contain_text(word)
