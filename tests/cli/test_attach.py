"""`bullpen attach`, used by a person in tmux."""

import re
import signal

import psutil
import pytest

from bullpen.cli.attach import exit_code
from bullpen.client import Client, ExitFrame
from support.intervals import exported
from support.server import Server
from support.tmux import PROMPT, Tmux

NOTICE = "the connection is lost"
BARS = r"Mem .*\["  # what top draws of the memory after `m`


async def new_terminal(server: Server, title: str = "job") -> dict[str, str]:
    session = await server.new_session(title=title)
    worker = await server.new_terminal(session["id"])
    assert isinstance(worker["pid"], int)
    return worker


async def attach(tmux: Tmux, *options: str, target: str = "job") -> None:
    """Attaches and waits until the program's prompt is drawn."""
    await tmux.enter(" ".join(["bullpen", "attach", *options, target]))
    await tmux.until(
        lambda screen: PROMPT not in screen and bool(re.search(r"[#$] *$", screen, re.MULTILINE))
    )


async def run_in_program(tmux: Tmux, line: str, answer: str) -> None:
    await tmux.enter(line)
    await tmux.until(answer)


async def test_typing_and_colours(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    await attach(tmux)
    await tmux.enter(r"printf '\033[31mr%s\033[0m\n' ed")
    assert "\x1b[31mred" in await tmux.until("\x1b[31mred", "-e")


async def test_the_program_has_our_size_and_follows_it(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    await attach(tmux)
    await run_in_program(tmux, "stty size", "30 100")
    tmux.resize(83, 21)
    await run_in_program(tmux, "stty size", "21 83")


async def test_both_ways_to_detach_leave_the_program_running(server: Server, tmux: Tmux) -> None:
    worker = await new_terminal(server)
    await tmux.enter("stty -a | md5sum | cut -c1-8 > before")
    for keys in (("C-]",), ("Enter", "~", ".")):
        await attach(tmux)
        await tmux.type(*keys)
        await tmux.until("[detached from job/terminal; come back with: bullpen attach")
        await tmux.enter("echo code=$?; clear -x")
    await tmux.enter("stty -a | md5sum | cut -c1-8 | diff - before && echo 'terminal as ''before'")
    await tmux.until("terminal as before")
    assert psutil.pid_exists(int(worker["pid"]))


async def test_how_to_detach_stays_on_the_screen_until_the_first_key(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    await attach(tmux)
    shown = await tmux.until("Ctrl-] or ~. detaches")
    assert shown.splitlines()[-1].startswith(" bullpen: Ctrl-] or ~. detaches")
    await tmux.type("a")
    await tmux.until(lambda screen: "detaches" not in screen and screen.rstrip().endswith("a"))


async def test_a_shell_looks_the_same_after_an_outage_and_goes_on_at_its_cursor(
    server: Server, tmux: Tmux
) -> None:
    await new_terminal(server)
    await attach(tmux)
    await run_in_program(tmux, "PS1='$ '; clear; seq 101 $((100 + 40))", "140\n$")
    before = tmux.screen()
    await server.kill()
    await tmux.until(NOTICE)
    await server.start()
    await tmux.until(lambda screen: screen == before)
    await run_in_program(tmux, "echo $((40 + 2))", "140\n$ echo $((40 + 2))\n42\n$")


async def test_the_programs_exit_code_is_ours(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    await attach(tmux)
    await tmux.enter("exit 7")
    await tmux.until("[job/terminal ended with code 7]")
    await tmux.enter("echo code=$?")
    await tmux.until("code=7")


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (ExitFrame(0, None), 0),
        (ExitFrame(7, None), 7),
        (ExitFrame(None, "SIGINT"), 130),
        (ExitFrame(None, "SIGRTMIN+6"), 128 + signal.SIGRTMIN + 6),
        (ExitFrame(None, "SIGUNHEARDOF"), 143),
    ],
    ids=str,
)
def test_how_it_ended_is_told_as_a_shell_would(end: ExitFrame, code: int) -> None:
    assert exit_code(end) == code


def clock_of(screen: str) -> str:
    """What top shows as the time, if it is there."""
    return next(iter(re.findall(r"top - (\S+)", screen)), "")


async def test_top_goes_on_over_a_killed_server(server: Server, tmux: Tmux) -> None:
    """The whole promise: kill -9 in the middle, what is typed meanwhile arrives, nothing is lost."""
    worker = await new_terminal(server)
    await attach(tmux)
    await run_in_program(tmux, "echo before the $((40 + 2))", "before the 42")
    await run_in_program(tmux, "top -d 0.5", "PID USER")
    assert not re.search(BARS, tmux.screen())
    await server.kill()
    await tmux.until(NOTICE)
    await tmux.type("m")
    await server.start()
    back = clock_of(await tmux.until(lambda screen: NOTICE not in screen and bool(re.search(BARS, screen))))
    await tmux.until(lambda screen: clock_of(screen) not in ("", back))
    await tmux.type("q")
    await tmux.until(lambda screen: re.search(r"[#$]$", screen.strip()) is not None)
    await run_in_program(tmux, "echo pid=$$", f"pid={worker['pid']}")
    assert "before the 42" in tmux.screen("-S", "-500")


async def test_a_full_screen_program_looks_the_same_after_a_killed_server(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    (server.workspace / "poem").write_text("".join(f"line {number}\n" for number in range(200)))
    await attach(tmux)
    await run_in_program(tmux, "LESS= less poem", "line 28")
    await tmux.type("Space")
    before = await tmux.until("line 57\n:")  # with its own prompt, the last thing it draws
    await server.kill()
    await tmux.until(NOTICE)
    await server.start()
    await tmux.until(lambda screen: screen == before)
    await tmux.type("q")
    await tmux.until("less poem")


async def test_a_quick_restart_is_not_worth_a_word(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    await tmux.enter(f"export {exported(outage_notice=60)}")  # a busy machine takes more than a second
    await attach(tmux)
    await run_in_program(tmux, "echo one $((1 + 1))", "one 2")
    await server.stop()
    await server.start()
    await run_in_program(tmux, "echo three $((2 + 2))", "three 4")
    assert NOTICE not in tmux.screen("-S", "-")


async def test_one_who_only_looks_types_nothing(server: Server, tmux: Tmux) -> None:
    worker = await new_terminal(server)
    await attach(tmux, "--read-only")
    await tmux.enter("touch typed")
    async with (
        Client(server.url, server.token) as client,
        client.terminal(worker["sessionId"], worker["id"]) as terminal,
    ):
        await terminal.write(b"echo from some$(echo where) else\n")
        await tmux.until("from somewhere else")
    assert not (server.workspace / "typed").exists()


async def test_a_question_of_the_program_is_answered_once(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    await attach(tmux)
    ask = r"""printf '\033[6n'; IFS= read -rsd R -t 50 a; IFS= read -rsd R -t 1 b; echo "${#a}:${#b}:" """
    await tmux.enter(ask)
    await tmux.until(lambda screen: re.search(r"^[4-9]:0:", screen, re.MULTILINE) is not None)


async def test_being_told_to_go_gives_the_terminal_back(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    await attach(tmux)
    await run_in_program(tmux, r"printf '\033[?1049h\033[?1000h\033[?25l%s' mess", "mess")
    (attached,) = [
        process
        for process in psutil.process_iter(["cmdline", "environ"])
        if "attach" in (process.info["cmdline"] or [])
        and (process.info["environ"] or {}).get("BULLPEN_HOME") == str(server.home)
    ]
    attached.terminate()
    await tmux.until("[detached from job/terminal")
    await tmux.enter("echo the shell ''works")
    await tmux.until("the shell works")


async def test_new_starts_in_the_directory_and_attaches(server: Server, tmux: Tmux) -> None:
    place = server.workspace / "site"
    place.mkdir()
    await tmux.enter(f"bullpen new {place} --name fresh")
    await tmux.until(lambda screen: PROMPT not in screen and "site" in screen)
    await run_in_program(tmux, "basename $(pwd) | tr a-z A-Z", "SITE")
    await tmux.type("C-]")
    await tmux.until("[detached from fresh/terminal")


async def test_bullpen_alone_says_what_to_do_next(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    await tmux.enter("clear; bullpen")
    screen = await tmux.until("Everything else")
    assert "is running" in screen
    assert "job" in screen
    assert "bullpen attach" in screen
    await server.kill()
    await tmux.enter("clear; bullpen")
    await tmux.until("start it with: bullpen serve")
