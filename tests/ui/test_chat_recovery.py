"""Chats with long histories, reloads and killed servers: no message is lost or doubled, no entry jumps."""

import asyncio
import re

import pytest_asyncio
from playwright.async_api import BrowserContext, Route, expect

from support.chat_page import ChatPage
from support.server import Server
from support.session_client import SessionClient, define_scripted

COUNT_WRITES = """
    window.writes = []
    const put = Storage.prototype.setItem
    Storage.prototype.setItem = function (key, value) {
      window.writes.push([key, performance.now()])
      put.call(this, key, value)
    }
    addEventListener('input', () => (window.typed = performance.now()), true)
"""
# Returns the key of the first visible entry and its distance from the upper edge in pixels.
FIRST_VISIBLE_ENTRY = """(log) => {
    const edge = log.getBoundingClientRect().top
    for (const entry of log.querySelectorAll('[data-key]')) {
      const box = entry.getBoundingClientRect()
      if (box.bottom > edge + 1) return [entry.dataset.key, Math.round(box.top - edge)]
    }
}"""
NEXT_FRAME = "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
TOP_OF_ENTRY = """(log, key) => {
    const entry = log.querySelector(`[data-key="${key}"]`)
    return entry && Math.round(entry.getBoundingClientRect().top - log.getBoundingClientRect().top)
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def long_chat(device: BrowserContext, server: Server) -> ChatPage:
    """Return a page that shows the end of a conversation with a thousand tool calls."""
    steps = [{"do": "tool", "title": f"work number {n}."} for n in range(1000)]
    await define_scripted(server, "busy", {"prompts": [steps]})
    talk = await SessionClient.begin(server, "busy")
    await talk.run_turn("go")
    chat = await ChatPage.at(device, talk)
    await expect(chat.log).to_contain_text("work number 999.")
    return chat


async def test_output_is_shown_while_it_arrives(chat: ChatPage) -> None:
    await chat.send_message("[[chunk 'first **bold** words']] [[wait_cancel]]")
    await expect(chat.log.locator("strong")).to_have_text("bold")
    await expect(chat.log).to_contain_text(re.compile(r"Working for \d+ s"))
    await chat.page.get_by_role("button", name="Stop").click()
    await expect(chat.log).to_contain_text("The turn was stopped.")
    await expect(chat.log).not_to_contain_text("Working")


async def test_two_pages_show_the_same_entries_in_the_same_order(
    chat: ChatPage, device: BrowserContext
) -> None:
    other = await ChatPage.at(device, chat.talk)
    await chat.send_message("[[stream n=50]] [[tool title=Look]] [[chunk end]]")
    await other.send_message("[[chunk 'from the other']]")
    for each in (chat, other):
        await expect(each.log.get_by_text("from the other", exact=True)).to_be_visible()
        await expect(each.log).not_to_contain_text("Working")
    texts = [
        await each.entries.evaluate_all("all => all.map(e => [e.dataset.key, e.className])")
        for each in (chat, other)
    ]
    assert texts[0] == texts[1]


async def test_the_page_holds_at_most_200_entries_while_it_loads_older_ones(long_chat: ChatPage) -> None:
    chat = long_chat
    assert await chat.entries.count() <= 200

    first = chat.entries.first
    for _ in range(60):
        if await chat.log.get_by_text("work number 0.", exact=True).count():
            break
        before = await first.get_attribute("data-key")
        key, top = await chat.log.evaluate(
            f"log => {{ log.scrollTo(0, 300); return ({FIRST_VISIBLE_ENTRY})(log) }}"
        )
        await expect(first).not_to_have_attribute("data-key", before or "")
        now = await chat.log.evaluate(TOP_OF_ENTRY, key)
        assert now is not None
        assert abs(now - top) <= 2, f"entry {key} jumped from {top} to {now}"
        assert await chat.entries.count() <= 200
    await expect(chat.log).to_contain_text("work number 0.")
    await expect(chat.log).not_to_contain_text("work number 999.")

    await chat.log.evaluate("log => log.scrollTo(0, log.scrollHeight)")
    await expect(chat.log).not_to_contain_text("work number 0.")
    assert await chat.entries.count() <= 200
    await chat.page.get_by_role("button", name="Latest").click()
    await expect(chat.log).to_contain_text("work number 999.")
    assert await chat.entries.count() <= 200


async def test_no_entry_moves_while_older_entries_are_loaded(long_chat: ChatPage) -> None:
    chat = long_chat
    requests: asyncio.Queue[Route] = asyncio.Queue()
    await chat.page.route("**/events?*", requests.put)
    while requests.empty():
        key, top = await chat.log.evaluate(
            f"log => {{ log.scrollTo(0, 300); return ({FIRST_VISIBLE_ENTRY})(log) }}"
        )
        await asyncio.sleep(0.05)
    await expect(chat.page.get_by_text("Loading earlier messages")).to_be_visible()
    assert await chat.log.evaluate(TOP_OF_ENTRY, key) == top
    first = await chat.entries.first.get_attribute("data-key")
    await (await requests.get()).continue_()
    await expect(chat.page.get_by_text("Loading earlier messages")).to_have_count(0)
    await expect(chat.entries.first).not_to_have_attribute("data-key", first or "")
    assert abs(await chat.log.evaluate(TOP_OF_ENTRY, key) - top) <= 2


async def test_the_scroll_position_survives_a_reload(long_chat: ChatPage) -> None:
    chat = long_chat
    first = chat.entries.first
    for _ in range(6):  # farther up than a new page loads
        before = await first.get_attribute("data-key")
        await chat.log.evaluate("log => log.scrollTo(0, 300)")
        await expect(first).not_to_have_attribute("data-key", before or "")
    await chat.log.evaluate(NEXT_FRAME)
    for _ in range(2):  # after the second reload, too: the first has not moved it
        key, top = await chat.log.evaluate(FIRST_VISIBLE_ENTRY)
        await chat.page.reload()
        await expect(chat.entries.and_(chat.log.locator(f"[data-key='{key}']"))).to_be_in_viewport()
        assert abs(await chat.log.evaluate(TOP_OF_ENTRY, key) - top) <= 2
    await chat.page.get_by_role("button", name="Latest").click()
    await expect(chat.log.get_by_text("work number 999.", exact=True)).to_be_in_viewport()
    await chat.page.reload()
    await expect(chat.log.get_by_text("work number 999.", exact=True)).to_be_in_viewport()


async def test_words_are_found_in_entries_that_are_not_loaded(long_chat: ChatPage) -> None:
    chat = long_chat
    await chat.page.keyboard.press("Control+f")
    await chat.page.get_by_label("Find in this session").fill("number 7.")
    await chat.page.keyboard.press("Enter")
    await expect(chat.log.get_by_text("work number 7.", exact=True)).to_be_in_viewport()


async def test_a_draft_survives_a_reload_and_is_written_once_after_the_last_change(
    chat: ChatPage,
) -> None:
    await chat.page.add_init_script(COUNT_WRITES)
    await chat.page.reload()
    await chat.wait_for_connection("connected")
    message = chat.page.get_by_label("Message", exact=True)
    await message.press_sequentially("half a thought", delay=20)
    written = "window.writes.filter(([key, at]) => key.includes('draft') && at > window.typed).length"
    async with asyncio.timeout(60):
        while await chat.page.evaluate(f"performance.now() < window.typed + 1500 || !{written}"):
            await asyncio.sleep(0.05)
    assert await chat.page.evaluate(written) == 1
    await chat.page.reload()
    await expect(message).to_have_value("half a thought")


async def test_a_server_killed_during_a_stream_loses_no_output_and_accepts_the_answer_later(
    chat: ChatPage, server: Server
) -> None:
    await chat.send_message("[[stream n=150 delay=0.02]] [[permission title=work]] [[chunk thanks]]")
    await chat.page.get_by_label("Message", exact=True).fill("my draft")
    await expect(chat.log).to_contain_text("<5>")
    await server.kill()
    await chat.wait_for_connection("reconnecting")
    await server.start()
    await chat.wait_for_connection("connected")
    await expect(chat.log).to_contain_text("<149>")
    await expect(chat.permission_card).to_be_visible()
    texts = await chat.log.get_by_label("Agent", exact=True).all_inner_texts()
    assert re.findall(r"<(\d+)>", "".join(texts)) == [str(n) for n in range(150)]
    await expect(chat.page.get_by_label("Message", exact=True)).to_have_value("my draft")
    await chat.permission_card.focus()
    await chat.page.keyboard.press("a")
    await expect(chat.log).to_contain_text("thanks")


async def test_a_prompt_written_without_a_server_survives_the_reload_and_arrives_once(
    chat: ChatPage, server: Server
) -> None:
    await chat.send_message("[[chunk hello]]")
    await expect(chat.log.get_by_label("Agent", exact=True)).to_contain_text("hello")
    await server.kill()
    await chat.wait_for_connection("reconnecting")
    await chat.send_message("[[chunk later]]")
    await expect(chat.log.get_by_label("Not sent yet")).to_contain_text("kept here")
    unsent = await chat.page.evaluate(
        "Object.keys(localStorage).filter((key) => key.startsWith('bullpen.unsent'))"
    )
    assert len(unsent) == 1
    await server.start()
    await chat.page.reload()
    await expect(chat.log.get_by_label("Agent", exact=True).last).to_contain_text("later")
    await expect(chat.log.get_by_label("Not sent yet")).to_have_count(0)
    events = await chat.talk.events()
    prompts = [each["data"]["text"] for each in events if each["type"] == "user_prompt"]
    assert prompts == ["[[chunk hello]]", "[[chunk later]]"]


async def test_a_chat_scrolled_to_its_end_stays_there_when_its_height_shrinks(long_chat: ChatPage) -> None:
    chat = long_chat
    latest = chat.page.get_by_role("button", name="Latest")
    await expect(latest).to_have_count(0)
    # The queue above the message field shrinks the log before the event of a scroll to the end arrives.
    await chat.log.evaluate(
        """log => {
          log.style.maxHeight = `${log.clientHeight - 120}px`
          log.dispatchEvent(new Event('scroll'))
        }"""
    )
    left = "log => Math.round(log.scrollHeight - log.scrollTop - log.clientHeight)"
    async with asyncio.timeout(30):  # not wait_for_function: the content security policy forbids its eval
        while await chat.log.evaluate(left) != 0:
            await asyncio.sleep(0.05)
    await expect(latest).to_have_count(0)
    await chat.log.evaluate("log => log.scrollTo(0, log.scrollHeight - log.clientHeight - 300)")
    await expect(latest).to_be_visible()
