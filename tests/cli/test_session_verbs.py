"""Verbs that send requests to a server, used by a script."""

import asyncio
import json
import re
import subprocess
from pathlib import Path

import click
import httpx
import pytest

from bullpen.cli.app import app
from bullpen.cli.verbs import VERBS
from bullpen.client import Client
from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient
from support.tmux import Tmux


async def type_into(server: Server, worker: dict[str, str], line: str) -> None:
    async with (
        Client(server.url, server.token) as client,
        client.terminal(worker["sessionId"], worker["id"]) as terminal,
    ):
        await terminal.write(line.encode() + b"\n")
        await terminal.flush()


async def terminal_of(server: Server, title: str) -> dict[str, str]:
    session = await server.new_session(title=title)
    worker: dict[str, str] = await server.new_terminal(session["id"])
    return worker


async def test_a_session_is_created_listed_stopped_and_purged(bullpen: Bullpen, server: Server) -> None:
    created = await bullpen("new", str(server.workspace), "--name", "tour", "-d", "-q")
    identifier = created.out.strip()
    assert created.code == 0
    assert (await bullpen("ls", "-q")).out.split() == [identifier]
    listed = json.loads((await bullpen("ls", "--json")).out)["sessions"]
    assert [(each["id"], each["title"]) for each in listed] == [(identifier, "tour")]
    table = (await bullpen("ls")).out
    assert "tour" in table
    assert identifier[:8] in table
    shown = json.loads((await bullpen("show", identifier[:6], "--json")).out)
    assert shown["workers"][0]["role"] == "terminal"
    assert (await bullpen("stop", "tour")).out == "stopped tour\n"
    assert "tour" not in (await bullpen("ls")).out
    assert "completed" in (await bullpen("ls", "--all")).out
    refused = await bullpen("rm", "--purge", "tour")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert (await bullpen("rm", "--purge", "--yes", "tour")).out == "purged tour\n"
    assert json.loads((await bullpen("ls", "--all", "--json")).out) == {"sessions": []}


@pytest.mark.parametrize("group", ["agents", "config", "repo", "roots", "rules", "sandbox", "token"])
async def test_a_group_without_a_verb_lists_its_items(bullpen: Bullpen, group: str) -> None:
    bare, listed = await bullpen(group, "--json"), await bullpen(group, "ls", "--json")
    assert (bare.code, bare.out) == (0, listed.out)
    assert (await bullpen(group)).out == (await bullpen(group, "ls")).out


async def test_list_is_another_name_of_ls_in_every_group(bullpen: Bullpen, server: Server) -> None:
    await terminal_of(server, "one")
    for group, *arguments in (
        *([name] for name in groups_that_list()),
        ["worker", "one"],
        ["queue", "one"],
    ):
        listed, also_listed = [await bullpen(group, verb, *arguments) for verb in ("ls", "list")]
        assert without_ages(also_listed.out) == without_ages(listed.out)
        assert (also_listed.code, also_listed.err) == (listed.code, listed.err)
    assert await bullpen("list", "-q") == await bullpen("ls", "-q")  # without ages


def without_ages(listed: str) -> list[str]:
    """Return the words of a list without the ages, which may differ between two calls."""
    return [word for word in listed.split() if not re.fullmatch(r"\d+[smhd]", word)]


def groups_that_list() -> list[str]:
    """Return the groups of verbs that have a verb `ls` without a required argument."""
    context = click.Context(app)
    found = {verb: app.get_command(context, verb) for verb in VERBS}
    groups = {verb: command for verb, command in found.items() if isinstance(command, click.Group)}
    listing = {verb: group.commands["ls"] for verb, group in groups.items() if "ls" in group.commands}
    return [verb for verb, ls in listing.items() if not any(param.required for param in ls.params)]


async def test_ls_sends_one_request(bullpen: Bullpen, server: Server) -> None:
    await terminal_of(server, "one")
    await SessionClient.begin(server, "demo", title="two")

    async def count_answers() -> int:
        """Return the number of answers so far, without the one to this request."""
        metrics = (await server.http.get("/metrics")).text
        counts = re.findall(r"^bullpen_http_answers_total\S* (\S+)$", metrics, re.MULTILINE)
        return sum(int(float(count)) for count in counts)

    before = await count_answers()
    listed = (await bullpen("ls")).out
    assert await count_answers() - before == 2  # with the one before it
    assert re.search(r"two .* idle ", listed), listed


async def test_workers_are_added_listed_restarted_and_ended(bullpen: Bullpen, server: Server) -> None:
    session = await server.new_session(title="many")
    first = (await bullpen("worker", "add", "many", "--name", "Build", "-q")).out.strip()
    await bullpen("worker", "add", "many")
    listed = json.loads((await bullpen("worker", "ls", "many", "--json")).out)["workers"]
    assert [worker["role"] for worker in listed] == ["build", "terminal"]
    await server.worker_in(session["id"], first, "active")
    await type_into(server, {"sessionId": session["id"], "id": first}, "exit")
    await server.worker_in(session["id"], first, "exited")
    assert (await bullpen("worker", "restart", "many/build")).code == 0
    assert (await bullpen("worker", "rm", "many/build")).out == "ended build\n"
    several = await bullpen("worker", "rm", "many")
    assert several.code == 1
    assert "many/role" in several.err


async def test_worker_add_says_how_to_use_the_worker(bullpen: Bullpen, server: Server) -> None:
    await server.new_session(title="many")
    kinds = {
        "terminal": "attach with: bullpen attach",
        "agent": "talk with: bullpen chat",
        "diff": "follow with: bullpen logs -f",
    }
    for kind, advice in kinds.items():
        assert advice in (await bullpen("worker", "add", "many", "--type", kind)).out


async def test_stop_and_rm_say_that_a_session_has_ended_already(bullpen: Bullpen, server: Server) -> None:
    session = await server.new_session(title="over")
    await bullpen("stop", "over")
    assert (await bullpen("stop", "over")).out == "over has ended already\n"
    advice = f"remove its data with: bullpen rm --purge {session['id'][:8]}"
    assert (await bullpen("rm", "over")).out == f"over has ended already; {advice}\n"
    assert (await server.call("GET", f"/api/sessions/{session['id']}"))["status"] == "completed"


async def test_an_export_that_fails_leaves_no_file(bullpen: Bullpen, server: Server, tmp_path: Path) -> None:
    await server.new_session(title="mute")
    file = tmp_path / "mute.cast"
    refused = await bullpen("export", "mute", "--format", "cast", "-o", str(file))
    assert refused.code == 1
    assert "a cast shows a terminal" in refused.err
    assert not file.exists()


async def test_logs_print_the_output_of_a_terminal(bullpen: Bullpen, server: Server) -> None:
    worker = await terminal_of(server, "talk")
    await type_into(server, worker, r"printf '\033[31m%s\033[0m\n' one two three; exit")
    await server.worker_in(worker["sessionId"], worker["id"], "exited")
    plain = (await bullpen("logs", "talk/terminal")).out
    assert "\none\ntwo\nthree\n" in plain
    assert "\x1b" not in plain
    assert "\x1b[31mone" in (await bullpen("logs", "talk/terminal", "--raw")).out
    tail = (await bullpen("logs", "talk/terminal", "--tail", "2")).out.splitlines()
    assert len(tail) == 2
    followed = await bullpen("logs", "-f", "talk/terminal")
    assert followed.out == plain


async def test_logs_refuse_a_format_that_the_target_does_not_have(bullpen: Bullpen, server: Server) -> None:
    await terminal_of(server, "talk")
    text = await bullpen("logs", "talk/terminal", "--json")
    assert (text.code, text.out, "has text, not JSON" in text.err) == (2, "", True)
    events = await bullpen("logs", "talk", "--raw")
    assert (events.code, events.out, "only a terminal has raw bytes" in events.err) == (2, "", True)


async def test_logs_print_the_events_of_a_session(bullpen: Bullpen, server: Server) -> None:
    worker = await terminal_of(server, "story")
    text = (await bullpen("logs", "story", "--events")).out
    assert "session start" in text
    assert "worker ready" in text
    lines = (await bullpen("logs", "story", "--json", "--tail", "1")).out.splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["worker_ready"]
    assert worker["id"] == json.loads(lines[0])["workerId"]


async def test_wait_reports_how_a_terminal_ended(bullpen: Bullpen, server: Server) -> None:
    good, bad = await terminal_of(server, "good"), await terminal_of(server, "bad")
    late = await bullpen("wait", "good", "--timeout", "0.2")
    assert late.code == 1
    assert "0.2 seconds" in late.err
    await type_into(server, good, "exit 0")
    assert (await bullpen("wait", "good", "--timeout", "30")).code == 0
    await type_into(server, bad, "exit 4")
    done = await bullpen("wait", "bad/terminal", "--timeout", "30")
    assert (done.code, done.out) == (1, "terminal: ended with code 4\n")
    report = json.loads((await bullpen("wait", "bad", "--json")).out)
    assert (report["sessionId"], report["status"], report["outcome"]) == (
        bad["sessionId"],
        "active",
        "failed",
    )
    assert [(each["role"], each["exitCode"]) for each in report["workers"]] == [("terminal", 4)]


async def test_kill_and_archive_end_a_session_and_name_the_verb_they_stand_for(
    bullpen: Bullpen, server: Server
) -> None:
    for verb in ("kill", "archive"):
        session = await server.new_session(title=verb)
        done = await bullpen(verb, verb)
        assert done == (0, f"stopped {verb}\n", f"bullpen: {verb} is `bullpen stop` here\n")
        assert (await server.call("GET", f"/api/sessions/{session['id']}"))["status"] == "completed"


async def test_stopping_one_worker_does_not_end_the_session(bullpen: Bullpen, server: Server) -> None:
    worker = await terminal_of(server, "half")
    assert (await bullpen("stop", "half/terminal")).out == "stopped half/terminal\n"
    assert (await server.worker_in(worker["sessionId"], worker["id"], "terminated"))["id"] == worker["id"]
    assert "half" in (await bullpen("ls")).out


async def test_repositories_are_added_listed_edited_and_removed(bullpen: Bullpen, workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", workspace / "site"], check=True)
    assert (await bullpen("repo", "add", str(workspace / "site"))).code == 0
    assert "site" in (await bullpen("repo", "ls")).out
    edited = await bullpen("repo", "set", "site", "--queue-size", "50", "--no-queue", "--json")
    assert (json.loads(edited.out)["queue"]["max_size"], json.loads(edited.out)["queue"]["enabled"]) == (
        50,
        False,
    )
    assert (await bullpen("repo", "rm", "site")).code == 0
    assert json.loads((await bullpen("repo", "ls", "--json")).out) == {"repositories": []}


async def test_status_counts_the_sessions(bullpen: Bullpen, server: Server) -> None:
    await terminal_of(server, "quiet")
    done = await bullpen("status")
    assert done.code == 0
    assert "is running; 1 idle" in done.out
    assert json.loads((await bullpen("status", "--json")).out)["sessions"] == {"idle": 1}


async def test_url_logs_a_browser_in(bullpen: Bullpen, server: Server) -> None:
    link = (await bullpen("url")).out.strip()
    assert link.startswith(server.url)
    async with httpx.AsyncClient(trust_env=False) as browser:
        answer = await browser.post(f"{server.url}/api/login", json={"code": link.partition("#code=")[2]})
    assert answer.status_code == 200


async def test_a_link_that_a_phone_cannot_open_is_printed_with_advice(
    bullpen: Bullpen, server: Server
) -> None:
    await server.new_session(title="seen")
    for arguments in (("url", "--qr"), ("share", "seen")):
        local = await bullpen(*arguments)
        assert (local.code, local.out.splitlines()[-1].startswith(server.url)) == (0, True)
        assert local.err.startswith("bullpen: only this machine can open this link. For a phone, start")
        assert "█" not in local.out
    assert (await bullpen("url")).err == ""
    server.set(BULLPEN_ALLOWED_HOSTS="bullpen.example", BULLPEN_TRUSTED_PROXIES="127.0.0.1")
    await server.restart()
    for arguments in (("url", "--qr"), ("share", "seen")):
        remote = await bullpen(*arguments)
        assert (remote.code, remote.err, "https://bullpen.example/#" in remote.out) == (0, "", True)
        assert ("█" in remote.out) == ("--qr" in arguments)


async def test_a_database_in_use_is_not_downgraded(bullpen: Bullpen) -> None:
    done = await bullpen("db", "downgrade", "base")
    assert done.code == 1
    assert "the server is running" in done.err
    assert (await bullpen("db", "current")).code == 0


async def test_the_shell_completes_names_of_sessions(bullpen: Bullpen, server: Server) -> None:
    await server.new_session(title="my-site")
    spaced = await server.new_session(title="two words")
    bullpen.env |= {"_BULLPEN_COMPLETE": "bash_complete", "COMP_WORDS": "bullpen attach ", "COMP_CWORD": "2"}
    assert sorted((await bullpen()).out.split()) == sorted(["plain,my-site", f"plain,{spaced['id'][:8]}"])
    await server.kill()
    assert (await bullpen()).out.split() == []


async def test_mistakes_are_answered_with_one_sentence_and_advice(
    bullpen: Bullpen, server: Server, tmp_path: Path
) -> None:
    await terminal_of(server, "one")
    for arguments, sentence in (
        (("show", "nothing"), "bullpen ls"),
        (("new", "-d", str(tmp_path)), "outside the workspace root"),
        (("new", "-d", str(server.workspace / "missing")), "missing"),
        (("show", "one/terminal"), "is a worker"),
        (("attach", "one"), "bullpen logs -f"),
        (("new", str(server.workspace)), "bullpen new --detach"),
        (("serve", "--no-open"), "another server runs"),
    ):
        done = await bullpen(*arguments)
        assert done.code in (1, 2), done
        assert sentence in done.err, done
        assert done.err.count("\n") == 1, done
    bullpen.env["BULLPEN_TOKEN"] = "wrong"
    done = await bullpen("ls")
    assert done.code == 1
    assert "token" in done.err


async def test_status_pid_prints_the_pid_only_while_the_server_runs(bullpen: Bullpen, server: Server) -> None:
    assert await bullpen("status", "--pid") == (0, f"{server.pid}\n", "")
    await server.kill()
    assert (server.home / "server.json").exists()
    not_running = (1, "", "bullpen: Bullpen is not running here; start it with: bullpen serve\n")
    assert await bullpen("status", "--pid") == not_running
    await server.start()
    assert await server.stop() == 0
    assert not (server.home / "server.json").exists()
    assert await bullpen("status", "--pid") == not_running


async def test_ls_and_show_name_the_program_that_a_terminal_runs(bullpen: Bullpen, tmux: Tmux) -> None:
    await tmux.enter("bullpen new workspace --name counting")
    await tmux.until("detaches")
    await tmux.enter("sleep 1000")
    async with asyncio.timeout(60):
        while "  terminal (sleep)  " not in (listed := (await bullpen("ls")).out):
            pass
    assert re.search("counting .* working ", listed)
    assert "runs sleep" in (await bullpen("show", "counting")).out


async def test_ls_shows_that_a_session_works_while_its_command_runs(bullpen: Bullpen, server: Server) -> None:
    await bullpen("new", "-d", str(server.workspace), "--name", "job", "--", "cat")
    session = (await server.call("GET", "/api/sessions"))["sessions"][0]
    async with asyncio.timeout(60):
        while " working " not in (listed := (await bullpen("ls")).out):
            pass
    assert re.search(r"job .* working  cat  ", listed)
    assert "runs cat" in (await bullpen("show", "job")).out
    await type_into(server, {"sessionId": session["id"], "id": session["workers"][0]["id"]}, "\x04")
    await server.worker_in(session["id"], session["workers"][0]["id"], "exited")
    assert " working " not in (await bullpen("ls")).out


async def test_ls_and_show_shorten_a_directory_in_the_middle(
    bullpen: Bullpen, tmux: Tmux, server: Server
) -> None:
    directory = server.workspace / "a-customer-with-a-long-name" / "frontend"
    directory.mkdir(parents=True)
    await bullpen("new", "-d", str(directory), "--name", "site")
    tmux.resize(50, 30)
    resized = "until [ \"$(stty size)\" = '30 50' ]; do :; done"
    await tmux.enter(f"{resized}; bullpen ls; bullpen show site; echo over-$((40 + 2))")
    shown = await tmux.until("\nover-42\n")
    assert re.search(r"^○ +site .*…\S*end  ", shown, re.MULTILINE), shown
    assert re.search(r"^directory +\S+…\S+/frontend$", shown, re.MULTILINE), shown


async def test_export_to_a_file_that_exists_names_force_which_replaces_it(
    bullpen: Bullpen, server: Server, tmp_path: Path
) -> None:
    await server.new_session(title="site")
    file = tmp_path / "site.md"
    file.write_text("mine")
    command = ("export", "site", "--format", "markdown", "-o", str(file))
    message = f"bullpen: {file} exists; replace it with --force, or name another file with --output\n"
    assert await bullpen(*command) == (2, "", message)
    assert file.read_text() == "mine"
    assert (await bullpen(*command, "--force")).out == f"wrote {file}\n"
    assert file.read_text().startswith("\n# site")


async def test_db_downgrade_asks_first_and_keeps_a_copy(tmux: Tmux, server: Server, bullpen: Bullpen) -> None:
    await server.new_session(title="precious")
    await server.stop()
    await tmux.enter("bullpen db downgrade base")
    await tmux.until("Remove the data that revision base cannot store?")
    await tmux.type("Enter")
    await tmux.until("the database was not changed")
    assert (await bullpen("db", "downgrade", "base")).code == 1  # without a terminal the user cannot be asked
    assert list(server.home.glob("*.copy")) == []
    await tmux.enter("clear")
    await tmux.until(lambda screen: "[y/N]" not in screen)
    await tmux.enter("bullpen db downgrade base")
    await tmux.until("[y/N]")
    await tmux.type("y", "Enter")
    await tmux.until("the database is at nothing: it is empty")
    (copy,) = server.home.glob("bullpen.db.*.copy")
    copy.replace(server.home / "bullpen.db")
    await server.start()
    assert [each["title"] for each in (await server.call("GET", "/api/sessions"))["sessions"]] == ["precious"]
