"""The chat with an agent in the page: its text and requests appear, and prompts are sent exactly once."""

import re
from pathlib import Path

from playwright.async_api import BrowserContext, expect

from support.chat_page import ChatPage
from support.repositories import Repo
from support.server import Server


async def test_one_button_starts_a_new_agent(device: BrowserContext, server: Server) -> None:
    page = await device.new_page()
    await page.goto(server.url)
    await page.get_by_label("Agent").select_option("demo")
    await page.get_by_role("button", name="New agent").click()
    await page.get_by_label("Message").fill("plan, think and help")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("log")).to_contain_text("I am the demo agent")
    await expect(page.get_by_label("Plan")).to_be_visible()
    assert await page.evaluate("window.violations") == []


async def test_text_and_tools_appear_in_order_and_again_after_a_reload(chat: ChatPage) -> None:
    await chat.send_message("[[thought hm]] [[chunk 'first <b>']] [[tool title=Look]] [[chunk second]]")
    shown = re.compile(r"hm\s*first <b>.*Look.*completed.*second", re.DOTALL)
    await expect(chat.log).to_contain_text(shown)
    await chat.page.reload()
    await expect(chat.log).to_contain_text(shown)


async def test_a_permission_is_answered_by_its_button_in_every_page(
    chat: ChatPage, device: BrowserContext
) -> None:
    await chat.send_message("[[permission title='delete it all']] [[chunk done]]")
    other = await ChatPage.at(device, chat.talk)
    for each in (chat, other):
        card = each.page.get_by_role("region", name="Permission: delete it all")
        await expect(card).to_contain_text("delete it all")
    await other.page.get_by_role("button", name="Allow", exact=True).click()
    for each in (chat, other):
        await expect(each.log).to_contain_text("done")
        await expect(each.page.get_by_role("button", name="Allow", exact=True)).to_have_count(0)


async def test_a_form_is_filled_in(chat: ChatPage) -> None:
    await chat.send_message("[[question 'your name?']]")
    form = chat.page.get_by_role("form", name="Question")
    await form.get_by_role("textbox").fill("Ada")
    await form.get_by_role("button", name="Answer").click()
    await expect(chat.log).to_contain_text('"name": "Ada"')


async def test_each_question_form_is_named_by_its_question(chat: ChatPage) -> None:
    await chat.send_message("[[question 'your name?']] [[question 'your age?']]")
    for question in ("your name?", "your age?"):
        form = chat.page.get_by_role("form", name=f"Question: {question}")
        await form.get_by_role("button", name="Decline").click()
        await expect(form).to_contain_text("declined")


async def test_a_message_during_a_turn_is_queued_and_stop_ends_the_turn(chat: ChatPage) -> None:
    await chat.send_message("[[chunk working]] [[wait_cancel]]")
    await expect(chat.log).to_contain_text("working")
    await chat.send_message("[[chunk later]]")
    await expect(chat.page.get_by_text("Queued (1)")).to_be_visible()
    await chat.page.get_by_role("button", name="Stop").click()
    await expect(chat.log).to_contain_text("The turn was stopped.")
    await chat.page.get_by_role("button", name="Resume").click()
    await expect(chat.log).to_contain_text("later")
    await expect(chat.page.get_by_role("region", name="Queue")).to_have_count(0)


async def test_a_killed_server_loses_and_doubles_no_prompt(chat: ChatPage, server: Server) -> None:
    await chat.send_message("[[stream n=200 delay=0.01]]")
    await expect(chat.log).to_contain_text("<5>")
    await server.kill()
    await expect(chat.page.locator("footer").last).to_contain_text("reconnecting")
    await chat.send_message("[[chunk after-the-kill]]")
    await expect(chat.log).to_contain_text("after-the-kill")
    await server.start()
    await expect(chat.log).to_contain_text("<199>")
    await expect(chat.log.get_by_label("Agent")).to_contain_text(["after-the-kill"])
    events = await chat.talk.events()
    prompts = [each["data"]["text"] for each in events if each["type"] == "user_prompt"]
    assert prompts.count("[[chunk after-the-kill]]") == 1
    text = "".join(await chat.log.get_by_label("Agent", exact=True).all_inner_texts())
    assert re.findall(r"<(\d+)>", text) == [str(n) for n in range(200)]


async def test_an_agent_is_stopped_without_its_session_and_started_again(chat: ChatPage) -> None:
    page = chat.page
    await chat.send_message("[[chunk before]]")
    await expect(chat.log).to_contain_text("before")
    await page.get_by_role("button", name="Session menu").click()
    await page.get_by_role("menuitem", name="Stop Scripted").click()
    await expect(chat.log).to_contain_text("The agent has stopped.")
    await expect(page.get_by_role("tab", name="Scripted")).to_be_visible()
    assert (await chat.talk.server.call("GET", chat.talk.path))["status"] == "active"
    await page.get_by_role("button", name="Session menu").click()
    await page.get_by_role("menuitem", name="Start Scripted again").click()
    await chat.send_message("[[chunk after]]")
    await expect(chat.log).to_contain_text("after")


async def test_archiving_can_be_undone(chat: ChatPage) -> None:
    await chat.page.get_by_role("button", name="Archive").click()
    await chat.page.get_by_role("button", name="Undo").click()
    await expect(chat.page.get_by_role("status").filter(has_text="Archiving")).to_have_count(0)
    await chat.send_message("[[chunk alive]]")
    await expect(chat.log).to_contain_text("alive")
    assert (await chat.talk.server.call("GET", chat.talk.path))["status"] == "active"


async def test_an_archived_session_names_its_uncommitted_files_and_is_continued(
    chat: ChatPage, workspace: Path
) -> None:
    Repo(workspace).write("notes.txt", "not committed\n")
    await chat.send_message("[[chunk before]]")
    await expect(chat.log).to_contain_text("before")
    await chat.page.keyboard.press("Control+Shift+X")
    await chat.page.reload()  # the page archives the session before it is gone
    archived = chat.page.get_by_role("region", name="Archived session")
    await expect(archived).to_contain_text("1 file has uncommitted changes: notes.txt.")
    await expect(chat.page.get_by_label("Message")).to_be_disabled()
    await archived.get_by_role("button", name="Changes").click()
    await expect(chat.page.get_by_role("region", name="notes.txt")).to_contain_text("not committed")
    await archived.get_by_role("button", name="Continue").click()
    await chat.send_message("[[chunk after]]")
    await expect(chat.log).to_contain_text("after")
    await expect(chat.log).to_contain_text("before")


async def test_a_prompt_that_crashed_its_agent_can_be_tried_again_in_a_new_session(chat: ChatPage) -> None:
    await chat.send_message("[[crash]]")
    await expect(chat.page.get_by_role("region", name="Archived session")).to_contain_text("Failed just now.")
    await chat.page.get_by_role("button", name="Try again in a new session").click()
    dialog = chat.page.get_by_role("dialog", name="New session")
    await expect(dialog.get_by_label("Prompt")).to_have_value("[[crash]]")
    session = await chat.talk.server.call("GET", chat.talk.path)
    project = dialog.get_by_role("radio", checked=True)
    await expect(project).to_have_attribute("title", session["locationPath"])


async def test_a_phone_shows_the_button_to_try_again_after_a_failure(chat: ChatPage) -> None:
    await chat.page.set_viewport_size({"width": 320, "height": 568})
    await chat.send_message("[[crash]]")
    button = chat.page.get_by_role("button", name="Try again in a new session")
    await expect(button).to_be_in_viewport(ratio=1)


async def test_an_agent_that_crashed_is_started_again(chat: ChatPage) -> None:
    await chat.send_message("[[chunk before]] [[crash]]")
    await chat.page.get_by_role("button", name="Start again").click()
    await chat.talk.wait_for_event("worker_spawning", run=2)
    await chat.send_message("[[chunk after]]")
    await expect(chat.log).to_contain_text("after")


async def test_the_message_field_has_the_height_of_its_text_at_every_width(chat: ChatPage) -> None:
    field = chat.page.get_by_label("Message", exact=True)
    await field.fill("word " * 40)
    lines = await field.evaluate("(field) => field.clientHeight")
    await chat.page.set_viewport_size({"width": 800, "height": 700})
    await expect(field).not_to_have_js_property("clientHeight", lines)
    await chat.page.set_viewport_size({"width": 1100, "height": 700})
    await expect(field).to_have_js_property("clientHeight", lines)
