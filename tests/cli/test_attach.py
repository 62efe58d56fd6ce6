"""`bullpen attach`, used in a tmux window."""

import re
import signal

import psutil
import pytest

from bullpen.cli.attach import exit_code
from bullpen.client import Client, ExitFrame
from support.intervals import exported
from support.server import Server
from support.tmux import PROMPT, Tmux

OUTAGE_NOTICE = "the connection is lost"
MEMORY_BAR = r"Mem .*\["  # top draws it after the key `m`


async def new_terminal(server: Server, title: str = "job") -> dict[str, str]:
    session = await server.new_session(title=title)
    worker = await server.new_terminal(session["id"])
    assert isinstance(worker["pid"], int)
    return worker


async def attach(tmux: Tmux, *options: str, target: str = "job") -> None:
    """Attach and wait until the prompt of the program is drawn."""
    await tmux.enter(" ".join(["bullpen", "attach", *options, target]))
    await tmux.until(
        lambda screen: PROMPT not in screen and bool(re.search(r"[#$] *$", screen, re.MULTILINE))
    )


async def run_in_program(tmux: Tmux, line: str, output: str) -> None:
    await tmux.enter(line)
    await tmux.until(output)


async def test_input_reaches_the_program_and_colours_are_drawn(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    await attach(tmux)
    await tmux.enter(r"printf '\033[31mr%s\033[0m\n' ed")
    assert "\x1b[31mred" in await tmux.until("\x1b[31mred", "-e")


async def test_the_program_has_the_size_of_the_window_and_follows_its_changes(
    server: Server, tmux: Tmux
) -> None:
    await new_terminal(server)
    await attach(tmux)
    await run_in_program(tmux, "stty size", "30 100")
    tmux.resize(83, 21)  # the window gets the new size a moment later
    resized = "until [ \"$(stty size)\" = '21 83' ]; do sleep 0.1; done"
    await run_in_program(tmux, f"{resized}; echo resized-$((40 + 2))", "resized-42")


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


async def test_the_hint_how_to_detach_is_shown_until_the_first_key(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    await attach(tmux)
    shown = await tmux.until("Ctrl-] or ~. detaches")
    assert shown.splitlines()[-1].startswith(" Ctrl-] or ~. detaches from bullpen")
    await tmux.type("a")
    await tmux.until(lambda screen: "detaches" not in screen and screen.rstrip().endswith("a"))


@pytest.mark.parametrize(
    "fill", [r"seq 200; printf '\033]2;mine\007'", r"printf '\033[?1049h\033]2;mine\007on%s' top"]
)
async def test_the_hint_is_in_the_title_until_the_first_key_while_the_last_row_is_in_use(
    server: Server, tmux: Tmux, fill: str
) -> None:
    await new_terminal(server)
    before = tmux.title()
    await attach(tmux)
    await tmux.enter(fill)
    await tmux.until(lambda screen: tmux.title() == "mine" and screen.rstrip().endswith(("#", "$")))
    full = tmux.screen()
    await tmux.type("C-]")
    await tmux.until("[detached from job/terminal")
    assert tmux.title() == before
    await tmux.enter("bullpen attach job")
    await tmux.until(lambda screen: tmux.title().startswith("Ctrl-] or ~. detaches") and screen == full)
    async with Client(server.url, server.token) as client:
        (worker,) = (await client.session((await client.sessions())[0].id)).workers
        async with client.terminal(worker.session_id, worker.id) as other:
            await other.write(b"printf '\\033]2;%s\\007more' theirs\n")
            await tmux.until("more")
    assert tmux.title().startswith("Ctrl-] or ~. detaches")
    await tmux.type("a")
    await tmux.until(lambda _: tmux.title() == "theirs")
    await tmux.type("C-]")
    await tmux.until(lambda _: tmux.title() == before)


async def test_a_shell_looks_the_same_after_an_outage_and_continues_at_its_cursor(
    server: Server, tmux: Tmux
) -> None:
    await new_terminal(server)
    await attach(tmux)
    await run_in_program(tmux, "PS1='$ '; clear; seq 101 $((100 + 40))", "140\n$")
    before = tmux.screen()
    await server.kill()
    await tmux.until(OUTAGE_NOTICE)
    await server.start()
    await tmux.until(lambda screen: screen == before)
    await run_in_program(tmux, "echo $((40 + 2))", "140\n$ echo $((40 + 2))\n42\n$")


async def test_attach_exits_with_the_exit_code_of_the_program(server: Server, tmux: Tmux) -> None:
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
def test_the_exit_code_is_the_one_that_a_shell_would_report(end: ExitFrame, code: int) -> None:
    assert exit_code(end) == code


def clock_of(screen: str) -> str:
    """Return the time that top shows, or an empty string."""
    return next(iter(re.findall(r"top - (\S+)", screen)), "")


async def test_top_continues_while_the_server_is_killed_and_restarted(server: Server, tmux: Tmux) -> None:
    """A key that is typed while the server is killed reaches top, and no output is lost."""
    worker = await new_terminal(server)
    await attach(tmux)
    await run_in_program(tmux, "echo before the $((40 + 2))", "before the 42")
    await run_in_program(tmux, "top -d 0.5", "PID USER")
    assert not re.search(MEMORY_BAR, tmux.screen())
    await server.kill()
    await tmux.until(OUTAGE_NOTICE)
    await tmux.type("m")
    await server.start()
    time_after = clock_of(
        await tmux.until(lambda screen: OUTAGE_NOTICE not in screen and bool(re.search(MEMORY_BAR, screen)))
    )
    await tmux.until(lambda screen: clock_of(screen) not in ("", time_after))
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
    before = await tmux.until("line 57\n:")  # less draws its prompt last
    await server.kill()
    await tmux.until(OUTAGE_NOTICE)
    await server.start()
    await tmux.until(lambda screen: screen == before)
    await tmux.type("q")
    await tmux.until("less poem")


async def test_a_quick_restart_of_the_server_shows_no_notice(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    # A restart on a busy machine takes longer than the normal delay of the notice.
    await tmux.enter(f"export {exported(outage_notice=60)}")
    await attach(tmux)
    await run_in_program(tmux, "echo one $((1 + 1))", "one 2")
    await server.stop()
    await server.start()
    await run_in_program(tmux, "echo three $((2 + 2))", "three 4")
    assert OUTAGE_NOTICE not in tmux.screen("-S", "-")


async def test_a_read_only_viewer_sends_no_input(server: Server, tmux: Tmux) -> None:
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


async def test_a_terminal_query_of_the_program_is_answered_once(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    await attach(tmux)
    query = r"""printf '\033[6n'; IFS= read -rsd R -t 50 a; IFS= read -rsd R -t 1 b; echo "${#a}:${#b}:" """
    await tmux.enter(query)
    await tmux.until(lambda screen: re.search(r"^[4-9]:0:", screen, re.MULTILINE) is not None)


async def test_sigterm_restores_the_terminal(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    await attach(tmux)
    await run_in_program(tmux, r"printf '\033[?1049h\033[?1000h\033[?25l%s' mess", "mess")
    (process,) = [
        each
        for each in psutil.process_iter(["cmdline", "environ"])
        if "attach" in (each.info["cmdline"] or [])
        and (each.info["environ"] or {}).get("BULLPEN_HOME") == str(server.home)
    ]
    process.terminate()
    await tmux.until("[detached from job/terminal")
    await tmux.enter("echo the shell ''works")
    await tmux.until("the shell works")


async def test_new_starts_in_the_directory_and_attaches(server: Server, tmux: Tmux) -> None:
    directory = server.workspace / "site"
    directory.mkdir()
    await tmux.enter(f"bullpen new {directory} --name fresh")
    await tmux.until(lambda screen: PROMPT not in screen and "site" in screen)
    await run_in_program(tmux, "basename $(pwd) | tr a-z A-Z", "SITE")
    await tmux.type("C-]")
    await tmux.until("[detached from fresh/terminal")


async def test_bullpen_without_arguments_says_what_to_do_next(server: Server, tmux: Tmux) -> None:
    await new_terminal(server)
    await tmux.enter("clear; bullpen")
    screen = await tmux.until("Everything else")
    assert "is running" in screen
    assert "job" in screen
    assert "bullpen attach" in screen
    await server.kill()
    await tmux.enter("clear; bullpen")
    await tmux.until("start it with: bullpen serve")
