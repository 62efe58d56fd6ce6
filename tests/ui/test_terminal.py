"""A terminal in the page: output, input, reloads, sizes, and hostile output of programs."""

import re
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from support.pages import TerminalPage, log_in, new_profile
from support.server import Server

HOSTILE_COUNTS = [f"\\e[2147483647{final}" for final in "bSTLMIZ@PX"]

# Every query that xterm would answer with input: attributes, status, modes, settings, window, colours, focus.
QUERIES = (
    r"\e[c\e[>c\e[=c\e[5n\e[6n\e[?6n\e[?2026$p\e[4$p\eP$qm\e\\\eP+q544e\e\\\e[14t\e[16t\e[18t\e[21t\e[>q\e[?u"
    r"\e]4;1;?\a\e]10;?\a\e]11;?\a\e]12;?\a\e[?996n\e[?1004h\e[?1004l"
)


@pytest_asyncio.fixture(loop_scope="session")
async def terminal(device: BrowserContext, server: Server) -> TerminalPage:
    return await TerminalPage.new(device, server)


async def test_a_new_terminal_runs_a_shell_in_the_workspace(terminal: TerminalPage, workspace: Path) -> None:
    await terminal.run("echo here-$PWD-$((6 * 7))")
    await terminal.wait_for_text(f"here-{workspace}-42")
    await expect(terminal.page.locator("main header").get_by_text(str(workspace))).to_be_visible()


async def test_the_terminal_draws_colours_without_a_violation_of_the_policy(terminal: TerminalPage) -> None:
    await terminal.run(r"printf '\e[38;2;255;100;0mORANGE\e[0m \e[1mBOLD\e[0m \e[31mRED\e[0m\n'")
    orange = terminal.rows.get_by_text("ORANGE", exact=True)
    await expect(orange).to_have_css("color", "rgb(255, 100, 0)")
    await expect(terminal.rows.get_by_text("BOLD", exact=True)).to_have_css("font-weight", "700")
    await expect(terminal.rows.get_by_text("RED", exact=True)).not_to_have_css("color", "rgb(0, 0, 0)")
    assert await terminal.page.evaluate("window.violations") == []


async def test_a_reload_shows_the_same_screen(terminal: TerminalPage) -> None:
    await terminal.run("seq -f 'line-%g' 200")
    await terminal.wait_for_text("line-200")
    await terminal.wait_for_prompt()
    before = await terminal.lines()
    await terminal.page.reload()
    await terminal.wait_for_text("line-200")
    await terminal.wait_for_prompt()
    assert await terminal.lines() == before


async def test_a_killed_server_loses_no_output_and_no_keystroke(
    terminal: TerminalPage, server: Server
) -> None:
    wait = "test $i = 5 && until test -e go; do sleep 0.05; done"
    await terminal.run(f"for i in $(seq 40); do echo n-$i; {wait}; done; read -r word; echo got-$word-")
    await terminal.wait_for_text("n-5")
    await server.kill()
    (server.workspace / "go").touch()
    await expect(terminal.page.locator("footer")).to_contain_text("reconnecting")
    await terminal.run("typed-meanwhile")
    await server.start()
    await terminal.wait_for_text("got-typed-meanwhile-")
    await expect(terminal.page.locator("footer")).to_contain_text("connected")
    text = "\n".join(await terminal.lines())
    printed = [int(n) for n in re.findall(r"^n-(\d+)$", text, re.MULTILINE)]
    assert printed == list(range(printed[0], 41))
    assert text.count("got-") == 1


async def test_the_page_never_answers_terminal_queries(
    terminal: TerminalPage, device: BrowserContext
) -> None:
    await terminal.run(f"printf '{QUERIES}'; echo asked-$((40 + 2))")
    await terminal.wait_for_text("asked-42")
    typed = terminal.typed_text
    viewers = [await TerminalPage.at(device, terminal.page.url) for _ in range(2)]
    for viewer in viewers:
        await viewer.wait_for_text("asked-42")
    assert [viewer.typed_text for viewer in viewers] == ["", ""]
    assert terminal.typed_text == typed


async def test_a_control_sequence_with_a_huge_count_does_not_freeze_the_page(terminal: TerminalPage) -> None:
    for n, sequence in enumerate(HOSTILE_COUNTS):
        await terminal.run(rf"printf 'x{sequence}\e[H\e[2J'; echo alive-$((100 + {n}))")
        await terminal.wait_for_text(f"alive-{100 + n}")


async def test_the_window_has_the_size_of_the_viewer_used_last(
    terminal: TerminalPage, browser: Browser, server: Server
) -> None:
    phone_profile = await new_profile(browser, 500, 700)
    await log_in(phone_profile, server)
    phone = await TerminalPage.at(phone_profile, terminal.page.url)

    await terminal.run("clear; echo laptop-$(tput cols)-")
    await phone.wait_for_text("laptop-")
    wide = await printed_cols(terminal, "laptop")
    await phone.run("clear; echo phone-$(tput cols)-")
    await terminal.wait_for_text("phone-")
    narrow = await printed_cols(terminal, "phone")
    await terminal.run("clear; echo back-$(tput cols)-")
    await phone.wait_for_text("back-")

    assert narrow < wide
    assert await printed_cols(phone, "back") == wide


async def printed_cols(terminal: TerminalPage, prefix: str) -> int:
    pattern = re.compile(rf"^{prefix}-(\d+)-$", re.MULTILINE)
    await expect(terminal.rows).to_contain_text(re.compile(rf"{prefix}-\d+-"))
    return int(pattern.findall("\n".join(await terminal.lines()))[-1])


async def test_a_program_that_ended_can_be_started_again(terminal: TerminalPage) -> None:
    await terminal.run("exit 3")
    await expect(terminal.page.locator("footer")).to_contain_text("finished (exit code 3)")
    await terminal.page.get_by_role("button", name="Start again").click()
    await expect(terminal.page.locator("footer")).not_to_contain_text("finished")
    await terminal.run("echo again-$((40 + 2))")
    await terminal.wait_for_text("again-42")


async def test_every_page_shows_that_the_session_is_archived_and_keeps_its_screen(
    terminal: TerminalPage, device: BrowserContext
) -> None:
    other = await TerminalPage.at(device, terminal.page.url)
    await terminal.run("echo kept-$((40 + 2))")
    await terminal.page.get_by_role("button", name="Archive").click()
    await terminal.page.get_by_role("button", name="Archive now").click()
    for page in (terminal.page, other.page):
        await expect(page.get_by_role("region", name="Archived session")).to_be_visible()
        await expect(page.get_by_role("tab")).to_have_count(1)
        await expect(page.locator(".xterm-rows")).to_contain_text("kept-42")
