"""Terminals in daily use: several at once, two devices, reloads, searches, links and the clipboard."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from support.pages import TerminalPage, log_in, new_profile
from support.server import Server

PHONE = {"width": 390, "height": 760}
# Keeps the newest history of a terminal, and the page's handler of messages.
KEEP_HISTORY = """
  const own = Object.getOwnPropertyDescriptor(WebSocket.prototype, 'onmessage')
  Object.defineProperty(WebSocket.prototype, 'onmessage', { ...own, set(handle) {
    own.set.call(this, handle && ((event) => {
      const type = typeof event.data === 'string' && JSON.parse(event.data).type
      if (type === 'history') window.lastHistory = { handle, event }
      handle(event)
    }))
  }})
"""
# A split pane sends its size before the history arrives; a slow network delivers both at once.
HISTORY_THEN_HALF_THE_ROWS = """() => {
  const { handle, event } = window.lastHistory
  const { cols, rows } = JSON.parse(event.data)
  handle(event)
  handle({ data: JSON.stringify({ type: 'size', cols, rows: Math.floor(rows / 2), owner: true }) })
}"""

T = TypeVar("T")


@pytest_asyncio.fixture(loop_scope="session")
async def terminal(device: BrowserContext, server: Server) -> TerminalPage:
    return await TerminalPage.new(device, server)


@pytest_asyncio.fixture(loop_scope="session")
async def clipboard(terminal: TerminalPage) -> AsyncIterator[None]:
    """Let the pages of the profile read and write the clipboard."""
    profile = terminal.page.context
    await profile.grant_permissions(["clipboard-read", "clipboard-write"])
    yield
    await profile.clear_permissions()


@pytest_asyncio.fixture(loop_scope="session")
async def phone_profile(browser: Browser, server: Server) -> BrowserContext:
    profile = await new_profile(browser, PHONE["width"], PHONE["height"])
    await log_in(profile, server)
    return profile


async def another_terminal(page: Page) -> None:
    await page.get_by_role("button", name="New tab").click()
    await page.get_by_role("menuitem", name="New terminal").click()


async def font_size(page: Page) -> float:
    """Return the font size of the terminal in pixels."""
    size: float = await page.locator(".xterm-rows").evaluate(
        "(rows) => parseFloat(getComputedStyle(rows).fontSize)"
    )
    return size


async def test_a_reload_shows_three_terminals_and_a_tui_as_they_were(
    terminal: TerminalPage, workspace: Path
) -> None:
    page = terminal.page
    urls, texts = [page.url], ["first-$((1 + 41))", "second-$((2 + 41))", "third-$((3 + 41))"]
    (workspace / "poem.txt").write_text("".join(f"verse {n}\n" for n in range(60)))
    for _ in range(2):
        await another_terminal(page)
        await expect(page).not_to_have_url(urls[-1])
        urls.append(page.url)
    before: list[list[str]] = []
    commands = {  # each with the pattern of the last output on the screen
        "seq 30": re.compile(r"30\s*>\s*$"),
        "printf '\\e[7mturned\\e[0m'": re.compile(r"second-43\s*turned.*[#$]\s*$"),
        "vim -u NONE poem.txt": re.compile(r"60 lines, 530 bytes"),
    }
    for url, text, (command, last) in zip(urls, texts, commands.items(), strict=True):
        await page.goto(url)
        await terminal.run(f"echo {text}; {command}")
        await expect(terminal.rows).to_contain_text(last)
        await until_still(terminal)
        before.append(await terminal.lines())

    terminal.sent_messages.clear()
    await page.reload()
    for url, lines in zip(urls, before, strict=True):
        await page.goto(url)
        await until(terminal.lines, lines.__eq__)
        await until_still(terminal)
        assert await terminal.lines() == lines
    assert terminal.typed_text == ""


async def until(read: Callable[[], Awaitable[T]], condition: Callable[[T], bool]) -> None:
    """Wait until the condition holds for what is shown."""
    async with asyncio.timeout(60):
        while not condition(await read()):
            await asyncio.sleep(0.05)


async def until_still(terminal: TerminalPage) -> None:
    """Wait until the screen has not changed for 0.3 seconds."""
    before: list[str] = []
    while before != (now := await terminal.lines()):
        before = now
        await terminal.page.evaluate("new Promise((done) => setTimeout(done, 300))")


async def test_a_phone_and_a_laptop_share_a_terminal_and_each_can_take_over_its_size(
    terminal: TerminalPage, phone_profile: BrowserContext
) -> None:
    await terminal.run("echo laptop-$((40 + 2))")
    phone = await TerminalPage.at(phone_profile, terminal.page.url)
    await phone.wait_for_text("laptop-42")
    await until(lambda: font_size(phone.page), lambda size: 7 <= size < 13)
    assert await font_size(terminal.page) >= 13
    await expect(phone.page.get_by_text("set by another viewer")).to_be_visible()
    wide = len(await terminal.lines())

    await phone.page.get_by_role("button", name="Take over").click()
    await expect(phone.page.get_by_role("button", name="Take over")).to_be_hidden()
    await until(lambda: font_size(phone.page), lambda size: size == 13)
    await expect(terminal.page.get_by_text("set by another viewer")).to_be_visible()
    await terminal.wait_for_text("laptop-42")
    assert phone.typed_text == ""

    await terminal.run("echo back-$((40 + 2))")  # the viewer that types determines the size
    await phone.wait_for_text("back-42")
    await expect(terminal.page.get_by_role("button", name="Take over")).to_be_hidden()
    await until(terminal.lines, lambda lines: len(lines) == wide)
    await until(lambda: font_size(phone.page), lambda size: size < 13)


async def test_a_terminal_that_shrinks_while_its_history_is_drawn_shows_no_blank_rows(
    terminal: TerminalPage,
) -> None:
    await terminal.page.add_init_script(KEEP_HISTORY)
    await terminal.run("clear; echo left-$((40 + 2))")
    await terminal.page.reload()
    await until(terminal.lines, lambda lines: lines[:2] == ["left-42", ">"])
    before = len(await terminal.lines())
    await terminal.page.evaluate(HISTORY_THEN_HALF_THE_ROWS)
    await until(terminal.lines, lambda lines: len(lines) == before // 2)
    await until_still(terminal)
    assert (await terminal.lines())[:2] == ["left-42", ">"]


async def test_the_wheel_scrolls_in_proportion_to_its_turn(terminal: TerminalPage) -> None:
    await terminal.run("seq 1000")
    await expect(terminal.rows).to_contain_text(re.compile(r"1000\s*>\s*$"))
    first = int((await terminal.lines())[0])
    await terminal.page.locator(".xterm-screen").hover()
    await terminal.page.mouse.wheel(0, -1200)
    await until(terminal.lines, lambda lines: first - int(lines[0]) > 50)


async def test_a_prompt_is_shown_once_on_a_phone_that_opens_a_wide_terminal(
    terminal: TerminalPage, phone_profile: BrowserContext
) -> None:
    await terminal.run("PS1='a-rather-long-prompt@of-some-host:~/projects/and/more> '; clear")
    await expect(terminal.rows).to_contain_text(re.compile(r"^a-rather-long-prompt\S*\s*$"))
    await terminal.page.close()
    for _ in range(2):
        phone = await TerminalPage.at(phone_profile, terminal.page.url)
        await expect(phone.rows).to_contain_text(re.compile(r"more>\s*$"))
        await until_still(phone)
        assert "".join(await phone.lines()).count("a-rather-long-prompt") == 1
        await phone.page.close()


async def test_the_key_bar_of_a_phone_has_the_keys_that_its_keyboard_lacks(
    terminal: TerminalPage, phone_profile: BrowserContext
) -> None:
    phone = await TerminalPage.at(phone_profile, terminal.page.url)
    keys = phone.page.get_by_role("toolbar", name="Keys")
    await expect(keys).to_be_visible()
    await expect(terminal.page.get_by_role("toolbar", name="Keys")).to_be_hidden()
    await phone.run("echo go-$((40 + 2)); cat -v")
    await phone.wait_for_text("go-42")  # the program now reads the terminal, not the shell
    for name in ("Esc", "Shift and Tab", "Up", "Left"):
        await keys.get_by_role("button", name=name, exact=True).click()
    await phone.page.keyboard.press("Enter")
    await phone.wait_for_text("^[^[[Z^[[A^[[D")
    await keys.get_by_role("button", name="Ctrl").click()
    await phone.page.keyboard.insert_text("c")
    await phone.wait_for_text("^C>")  # what is typed before the shell runs again is lost
    await phone.run("echo ended-$((40 + 2))")
    await phone.wait_for_text("ended-42")
    assert "\x03" in phone.typed_text


async def test_words_are_found_in_lines_that_have_scrolled_away(terminal: TerminalPage) -> None:
    await terminal.run("seq -f 'line-%g-' 300")
    await terminal.wait_for_text("line-300-")
    await terminal.page.keyboard.press("Control+Shift+F")
    field = terminal.page.get_by_label("Find in this terminal")
    await field.fill("line-7-")
    await terminal.wait_for_text("line-7-")
    await expect(terminal.page.locator("search").get_by_role("status")).to_have_text("1 of 1")
    await field.press("Escape")
    await expect(field).to_be_hidden()
    assert "line-7-" not in terminal.typed_text


async def test_a_link_in_a_terminal_is_opened_only_after_the_user_confirms_its_address(
    terminal: TerminalPage, device: BrowserContext
) -> None:
    await terminal.run("clear; printf '\\e]8;;http://127.0.0.1:9/named\\e\\\\words\\e]8;;\\e\\\\\\n'")
    await terminal.wait_for_text("words")
    named = terminal.rows.get_by_text("words", exact=True).last
    await named.hover(force=True)  # an element of xterm covers the rows
    await expect(terminal.page.locator("footer")).to_contain_text("http://127.0.0.1:9/named")
    pages = len(device.pages)
    await named.click(force=True)
    question = terminal.page.get_by_role("dialog", name="Open this address?")
    await expect(question).to_contain_text("http://127.0.0.1:9/named")
    assert len(device.pages) == pages
    async with device.expect_page() as opening:
        await question.get_by_role("button", name="Open in a new tab").click()
    opened = await opening.value
    assert await opened.evaluate("window.opener") is None


@pytest.mark.usefixtures("clipboard")
async def test_selected_text_is_copied(terminal: TerminalPage) -> None:
    await terminal.run("clear; echo take-$((40 + 2))")
    await terminal.wait_for_text("take-42")
    await terminal.rows.get_by_text("take-42", exact=True).dblclick(position={"x": 8, "y": 8}, force=True)
    await expect(terminal.page.locator("footer")).to_contain_text("Copied.")
    assert "take" in await terminal.page.evaluate("navigator.clipboard.readText()")


PASTE = """(text) => {
    const data = new DataTransfer()
    data.setData('text/plain', text)
    const event = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
    document.querySelector('.xterm-helper-textarea').dispatchEvent(event)
}"""


async def test_lines_that_the_shell_would_run_are_pasted_only_after_a_confirmation(
    terminal: TerminalPage,
) -> None:
    await terminal.run("bind 'set enable-bracketed-paste off' 2>/dev/null; echo ready-$((40 + 2))")
    await terminal.wait_for_text("ready-42")
    await terminal.page.evaluate(PASTE, "echo one-$((1 + 1))\necho two-$((1 + 1))\n")
    question = terminal.page.get_by_role("dialog", name="Paste this into the terminal?")
    await expect(question).to_contain_text("2 lines")
    await question.get_by_role("button", name="Do not paste").click()
    assert "one" not in terminal.typed_text
    await terminal.page.evaluate(PASTE, "echo one-$((1 + 1))\necho two-$((1 + 1))\n")
    await question.get_by_role("button", name="Paste", exact=True).click()
    await terminal.wait_for_text("two-2")


async def test_a_long_paste_arrives_completely(terminal: TerminalPage, workspace: Path) -> None:
    text = "".join(f"{n:06d} ünïcode 🎉\n" for n in range(8000))
    reading = f"head -c {len(text.encode())} > pasted"
    await terminal.run(f"stty -icanon -echo; echo go-$((40 + 2)); {reading}; echo got-$((40 + 2))")
    await terminal.wait_for_text("go-42")  # the program now reads the terminal, not the shell
    await terminal.page.evaluate(PASTE, text)
    await terminal.page.get_by_role("button", name="Paste", exact=True).click()
    await terminal.wait_for_text("got-42")
    assert (workspace / "pasted").read_text() == text


@pytest.mark.usefixtures("clipboard")
async def test_a_program_writes_to_the_clipboard_only_when_the_user_allows_it(
    terminal: TerminalPage,
) -> None:
    await terminal.page.evaluate("navigator.clipboard.writeText('mine')")
    await terminal.run(r"printf '\e]52;c;Z2l2ZW4=\a\e]52;c;?\a'")
    offer = terminal.page.get_by_role("alertdialog", name="Clipboard")
    await expect(offer).to_contain_text("given")
    assert await terminal.page.evaluate("navigator.clipboard.readText()") == "mine"
    await offer.get_by_role("button", name="Copy it").click()
    await expect(terminal.page.locator("footer")).to_contain_text("Copied.")
    assert await terminal.page.evaluate("navigator.clipboard.readText()") == "given"


async def test_a_terminal_is_drawn_with_webgl_if_there_is_a_graphics_card(
    device: BrowserContext, server: Server
) -> None:
    page = await device.new_page()
    await page.add_init_script(
        """
        const get = WebGL2RenderingContext.prototype.getParameter
        WebGL2RenderingContext.prototype.getParameter = function (name) {
          return name === 0x9246 ? 'A graphics card' : get.call(this, name)  // the name of the renderer
        }
        """
    )
    await page.goto(server.url)
    await page.get_by_role("button", name="New terminal").click()
    await expect(page.locator(".xterm-screen canvas").first).to_be_attached()
    await expect(page.locator(".xterm-rows")).to_have_count(0)
    assert await page.evaluate("window.violations") == []


HOSTILE_OUTPUT = [
    r"\e]8;;javascript:alert(1)\e\\js\e]8;;\e\\",
    r"\e]8;;file:///etc/passwd\e\\file\e]8;;\e\\",
    r"\e]8;;data:text/html,<script>alert(1)</script>\e\\data\e]8;;\e\\",
    r"\e]52;c;c3RvbGVu\a\e]52;p;c3RvbGVu\a\e]52;c;!\a",
    r"\e[2147483647b\e[2147483647S\e[99999999;99999999H\e[2147483647@",
    r"\e[8;9999;9999t\e[3;0;0t\e[9;1t",
    r"\eP1;2;3|17/ab\e\\\e_Gi=1,a=T;AAAA\e\\\e^private\e\\",
]


@pytest.mark.usefixtures("clipboard")
async def test_hostile_output_changes_neither_the_page_nor_the_clipboard(
    terminal: TerminalPage, device: BrowserContext
) -> None:
    page = terminal.page
    await page.evaluate("navigator.clipboard.writeText('mine')")
    for n, sequence in enumerate(HOSTILE_OUTPUT):
        await terminal.run(rf"printf '%b' '{sequence}'; printf '\e[0m\e[H\e[2J'; echo alive-$((100 + {n}))")
        await terminal.wait_for_text(f"alive-{100 + n}")
    await terminal.run(
        r"printf '\e]0;'; head -c 1000000 /dev/zero | tr '\0' T; printf '\a'; echo titled-$((40 + 2))"
    )
    await terminal.wait_for_text("titled-42")
    pages = len(device.pages)
    await terminal.run(rf"clear; printf '%b' '{HOSTILE_OUTPUT[0]}'; echo; echo shown-$((40 + 2))")
    await terminal.wait_for_text("shown-42")
    await terminal.rows.get_by_text("js", exact=True).last.click(modifiers=["ControlOrMeta"], force=True)
    await terminal.run("echo still-$((40 + 2))")
    await terminal.wait_for_text("still-42")
    assert len(device.pages) == pages
    assert await page.evaluate("navigator.clipboard.readText()") == "mine"
    assert re.search("[TU]{20}", await page.title()) is None
    assert await page.evaluate("window.violations") == []
