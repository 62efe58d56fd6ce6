"""Views of all sessions: the inbox answers requests, the search finds texts, usage shows tokens and cost."""

import asyncio

from playwright.async_api import BrowserContext, Locator, Page, Route, expect

from support.pages import TerminalPage
from support.server import Server
from support.session_client import SessionClient, define_scripted


async def open_view(device: BrowserContext, server: Server, view: str) -> Page:
    page = await device.new_page()
    await page.goto(f"{server.url}/#/{view}")
    return page


async def until_found(server: Server, words: str, count: int) -> None:
    """Wait until the search finds the words so often: a text is indexed a moment after it was stored."""
    async with asyncio.timeout(30):
        while len((await server.call("GET", "/api/search", params={"q": words}))["results"]) != count:
            await asyncio.sleep(0.05)


async def press_until_gone(page: Page, card: Locator, key: str) -> None:
    """Press a key until the card is answered: a card ignores keys for a moment after it got the focus."""
    async with asyncio.timeout(30):
        while await card.count():
            await page.keyboard.press(key)
            await asyncio.sleep(0.1)


def cards(page: Page) -> Locator:
    return page.get_by_role("main").get_by_role("article")


async def test_two_sessions_are_answered_in_the_inbox_by_button_and_by_key(
    device: BrowserContext, server: Server
) -> None:
    await define_scripted(server)
    first, second = [
        await SessionClient.begin(server, title=title) for title in ("tidy the attic", "paint the fence")
    ]
    for talk in (first, second):
        await talk.prompt("[[permission title=work]]")
        await talk.wait_for_event("permission", status="pending")
    page = await open_view(device, server, "inbox")
    await expect(cards(page)).to_have_count(2)
    attic = page.get_by_role("article", name="Permission: tidy the attic")
    await attic.get_by_role("button", name="Allow", exact=False).first.click()
    await first.wait_for_event("permission", status="selected", optionId="yes")
    fence = page.get_by_role("article", name="Permission: paint the fence")
    await fence.focus()
    await press_until_gone(page, fence, "d")
    await second.wait_for_event("permission", status="selected", optionId="no")
    done = page.get_by_role("article", name="Finished:")
    await expect(done).to_have_count(2)
    await expect(cards(page)).to_have_count(2)
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("s")
    await expect(done).to_have_count(1)
    await done.get_by_role("button", name="Seen").click()
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()


async def test_an_answer_that_arrives_after_its_card_was_removed_causes_no_error(
    device: BrowserContext, server: Server
) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server, title="Asks")
    await talk.prompt("[[permission title=work]]")
    await talk.wait_for_event("permission", status="pending")
    page = await open_view(device, server, "inbox")
    card = page.get_by_role("article", name="Permission: Asks")
    answered = asyncio.Event()

    async def hold(route: Route) -> None:
        answer = await route.fetch()
        await expect(card).to_have_count(0)
        await route.fulfill(response=answer)
        answered.set()

    await page.route("**/permissions/*", hold)
    await card.get_by_role("button", name="Allow", exact=False).first.click()
    async with asyncio.timeout(30):
        await answered.wait()
    await page.get_by_role("article", name="Finished:").get_by_role("button", name="Seen").click()
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()


async def test_the_keys_of_the_inbox_work_as_soon_as_the_inbox_is_opened(
    device: BrowserContext, server: Server
) -> None:
    talk = await SessionClient.begin(server, "demo", title="Asks")
    await talk.prompt("edit notes.md")
    await talk.open_permission()
    page = await open_view(device, server, "")
    await page.get_by_role("link", name="Inbox").click()
    card = page.get_by_role("article", name="Permission: Asks")
    await expect(card).to_be_focused()
    await press_until_gone(page, card, "a")
    await talk.wait_for_event("permission", status="selected", optionId="once")


async def test_answering_the_question_and_opening_the_finished_session_empties_the_inbox(
    device: BrowserContext, server: Server
) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server, title="choose a colour")
    await talk.prompt("[[question 'which colour?']]")
    await talk.wait_for_event("question", status="pending")
    page = await open_view(device, server, "inbox")
    question = page.get_by_role("form", name="Question")
    await question.get_by_role("textbox").first.fill("blue")
    await question.get_by_role("button", name="Answer").click()
    await talk.wait_for_event("question", status="accepted")
    await talk.wait_for_event("turn_end")
    await (
        page.get_by_role("article", name="Finished: choose a colour")
        .get_by_role("button", name="Open")
        .click()
    )
    await expect(page.get_by_role("log")).to_be_visible()
    await page.goto(f"{server.url}/#/inbox")
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()


async def test_a_session_that_another_client_marked_as_seen_is_shown_as_seen(
    device: BrowserContext, server: Server
) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server, title="paint the shed")
    await talk.run_turn("[[chunk done]]")
    page = await open_view(device, server, "inbox")
    row = page.get_by_role("navigation", name="Sessions").get_by_role("link", name="paint the shed")
    await expect(row.get_by_label("done, not seen yet")).to_be_visible()
    await expect(page.get_by_role("article")).to_contain_text("Finished.")
    await server.call("POST", f"{talk.path}/seen", 204)
    await expect(row.get_by_label("idle")).to_be_visible()


async def test_a_search_result_opens_the_message_and_marks_it(device: BrowserContext, server: Server) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server, title="a long talk")
    await talk.run_turn("[[chunk here lies the needle]]")
    await talk.run_turn(
        "[[tool]]" * 450
    )  # so many entries that the page does not load the earlier ones at once
    await until_found(server, "lies needle", 2)
    page = await open_view(device, server, "search")
    await page.get_by_role("searchbox", name="Search all sessions").fill("lies needle")
    results = page.get_by_role("main").get_by_role("listitem")
    await expect(results).to_have_count(2)
    await page.get_by_role("combobox", name="Who").select_option("agent")
    await expect(results).to_have_count(1)
    await expect(results.locator("mark")).to_have_text(["lies", "needle"])
    await results.get_by_role("link").click()
    marked = page.get_by_role("log").locator(".marked")
    await expect(marked).to_have_count(1)
    await expect(marked.get_by_text("here lies the needle", exact=True)).to_be_in_viewport()
    await page.go_back()
    await expect(results).to_have_count(1)
    await page.get_by_role("searchbox").fill("nowhere")
    await expect(page.get_by_text("Nothing found")).to_be_visible()


async def test_an_open_search_shows_a_message_that_is_written_later(
    device: BrowserContext, server: Server
) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server, title="a talk")
    page = await open_view(device, server, "search")
    await page.get_by_role("searchbox", name="Search all sessions").fill("lies needle")
    await expect(page.get_by_text("Nothing found")).to_be_visible()
    await talk.run_turn("[[chunk here lies the needle]]")
    await expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(2)


async def test_a_search_result_opens_the_terminal_at_the_words(
    device: BrowserContext, server: Server
) -> None:
    terminal = await TerminalPage.new(device, server)
    await terminal.run("printf 'sweet gre%s\\n' apes")
    await terminal.wait_for_text("sweet greapes")
    await until_found(server, "greapes", 1)
    page = terminal.page
    await page.goto(f"{server.url}/#/search/greapes")
    results = page.get_by_role("main").get_by_role("listitem")
    await expect(results).to_have_count(1)
    await results.get_by_role("link").click()
    await expect(page.get_by_role("searchbox", name="Find in this terminal")).to_have_value("greapes")
    await expect(page.get_by_text("1 of 1")).to_be_visible()


async def use_dollars(server: Server, title: str, dollars: float) -> None:
    """Begin a session with one turn that has this cost."""
    cost = {"amount": dollars, "currency": "USD"}
    update = {"sessionUpdate": "usage_update", "used": 100, "size": 1000, "cost": cost}
    await define_scripted(server, script={"prompts": [[{"do": "update", "update": update}]]})
    talk = await SessionClient.begin(server, title=title)
    await talk.run_turn("go")


async def test_usage_is_shown_as_a_plot_and_a_table(device: BrowserContext, server: Server) -> None:
    await use_dollars(server, "costly", 0.5)
    page = await open_view(device, server, "usage")
    row = page.get_by_role("row", name="costly")
    await expect(row).to_contain_text("$0.50")
    await page.get_by_role("button", name="Cost in USD").click()
    await expect(page.get_by_role("img", name="Cost in USD by day").locator("rect.part")).to_have_count(1)
    await page.get_by_role("button", name="Agent", exact=True).click()
    await expect(page.get_by_role("row", name="Scripted")).to_contain_text("$0.50")
    await page.get_by_role("link", name="Inbox").click()
    await expect(page.get_by_role("heading", name="Inbox")).to_be_visible()


async def test_usage_fits_on_a_phone(device: BrowserContext, server: Server) -> None:
    await use_dollars(server, "a costly session with a long title", 1234.5)
    page = await open_view(device, server, "usage")
    await page.set_viewport_size({"width": 390, "height": 780})
    await expect(page.get_by_role("cell", name="$1234.50")).to_be_visible()
    table = page.get_by_role("table")
    assert await table.evaluate("(table) => table.offsetWidth <= table.parentElement.clientWidth")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_turns_of_agents_that_report_no_usage_are_counted_without_a_plot(
    device: BrowserContext, server: Server
) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server, title="without a report")
    await talk.run_turn("[[chunk done]]")
    page = await open_view(device, server, "usage")
    await expect(page.get_by_role("row", name="without a report")).to_be_visible()
    await expect(page.get_by_text("No agent has reported the usage of these turns.")).to_be_visible()
    await expect(page.get_by_role("main").get_by_role("img")).to_have_count(0)
