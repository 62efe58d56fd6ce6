"""A page that shows the conversation with one agent, and what a person does there."""

from playwright.async_api import BrowserContext, Locator, Page, expect

from support.talk import Talk


class ChatPage:
    """A page that shows the conversation with one agent."""

    def __init__(self, page: Page, talk: Talk) -> None:
        self.page = page
        self.talk = talk

    @classmethod
    async def at(cls, device: BrowserContext, talk: Talk) -> "ChatPage":
        this = cls(await device.new_page(), talk)
        await this.page.goto(f"{talk.server.url}/#/session/{talk.id}")
        await this.light("connected")
        return this

    @property
    def log(self) -> Locator:
        return self.page.get_by_role("log")

    async def say(self, text: str) -> None:
        await self.page.get_by_label("Message", exact=True).fill(text)
        await self.page.keyboard.press("Enter")

    @property
    def entries(self) -> Locator:
        """What the page holds of the conversation."""
        return self.log.locator("[data-key]")

    @property
    def card(self) -> Locator:
        """The permission that waits."""
        return self.page.get_by_role("region", name="Permission")

    async def light(self, word: str) -> None:
        await expect(self.page.locator("footer").last).to_contain_text(word)
