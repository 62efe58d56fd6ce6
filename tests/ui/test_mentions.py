"""An at sign in the message field completes the files of the workspace."""

from playwright.async_api import expect

from support.chat_page import ChatPage


async def test_a_file_is_mentioned_with_the_keyboard_and_by_touch(chat: ChatPage) -> None:
    for name in ("src/main.py", "src/my map.txt", "readme.md"):
        file = chat.talk.server.workspace / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    field = chat.page.get_by_label("Message", exact=True)
    await field.press_sequentially("see @ma")
    files = chat.page.get_by_role("listbox", name="Files")
    await expect(files.get_by_role("option")).to_have_text(["src/main.py", "src/my map.txt"])
    await expect(field).to_have_attribute("aria-activedescendant", "chat-suggestions-0")
    await field.press("ArrowDown")
    await expect(field).to_have_attribute("aria-activedescendant", "chat-suggestions-1")
    await field.press("Enter")
    await expect(field).to_have_value('see @"src/my map.txt" ')
    await chat.page.get_by_role("button", name="Mention a file").click()
    await expect(field).to_have_value('see @"src/my map.txt" @')
    await files.get_by_role("option", name="readme.md").click()
    await expect(field).to_have_value('see @"src/my map.txt" @readme.md ')
    await field.press("Enter")
    await expect(chat.log).to_contain_text('see @"src/my map.txt" @readme.md')
