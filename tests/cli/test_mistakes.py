"""The mistakes a person easily makes, each answered in one sentence that helps, never with a traceback."""

from pathlib import Path
from typing import NamedTuple

import pytest

from support.commands import Bullpen, CommandResult
from support.server import Server


class Mistake(NamedTuple):
    """A command, what the environment says on top, and the answer; `{}` are the workspace and the port."""

    command: str
    answer: str
    env: dict[str, str]
    code: int = 1


MISTAKES = {
    "a wrong id": Mistake("show beef", "there is no session or worker called beef; see: bullpen ls -a", {}),
    "a wrong worker": Mistake(
        "logs beef/terminal", "there is no session or worker called beef/terminal; see: bullpen ls -a", {}
    ),
    "a port that is taken": Mistake(
        "serve --no-open",
        "cannot listen on 127.0.0.1:{port}: Address already in use; try another --port",
        {"BULLPEN_HOME": "{workspace}/other"},
        2,
    ),
    "a second server": Mistake(
        "serve --no-open", "another server runs on {home}; stop it first or set BULLPEN_HOME", {}
    ),
    "a wrong token": Mistake(
        "ls",
        "that token is not known here; unset BULLPEN_TOKEN, or set it to a token of the server",
        {"BULLPEN_TOKEN": "wrong"},
    ),
    "no token for a server elsewhere": Mistake(
        "ls",
        "set BULLPEN_TOKEN to a token of the server at http://bullpen.example",
        {"BULLPEN_URL": "http://bullpen.example", "BULLPEN_TOKEN": ""},
    ),
    "an address that is none": Mistake(
        "ls",
        "BULLPEN_URL must look like http://127.0.0.1:7420, not localhost",
        {"BULLPEN_URL": "localhost"},
        2,
    ),
    "nobody at an address": Mistake(
        "ls",
        "nothing answers at http://127.0.0.1:1; is Bullpen running there?",
        {"BULLPEN_URL": "http://127.0.0.1:1"},
    ),
    "a directory outside the root": Mistake(
        "new -d /",
        "/ is outside the workspace root {workspace}; choose a directory inside it, "
        "or start the server with another --workspace-root",
        {},
    ),
    "a directory that is not there": Mistake(
        "new -d {workspace}/site", "there is no directory {workspace}/site", {}
    ),
    "a directory that is no repository": Mistake(
        "repo add {workspace}", "{workspace} is not a git repository; run `git init` there first", {}, 2
    ),
    "a verb that is nearly right": Mistake(
        "atach first", "No such command 'atach'. Did you mean 'attach'? (see: bullpen --help)", {}, 2
    ),
    "a verb of a verb": Mistake(
        "worker ad", "No such command 'ad'. Did you mean 'add'? (see: bullpen worker --help)", {}, 2
    ),
    "a flag that is nearly right": Mistake(
        "ls --jsn", "No such option: --jsn (Possible options: --json) (see: bullpen ls --help)", {}, 2
    ),
    "an argument left out": Mistake(
        "stop", "Missing argument 'SESSION|WORKER...' (see: bullpen stop --help)", {}, 2
    ),
    "a word where a number goes": Mistake(
        "wait first --timeout soon", "--timeout must be a number, 0 or more, not soon", {}, 2
    ),
    "a time that never comes": Mistake(
        "wait first --timeout nan", "--timeout must be a number, 0 or more, not nan", {}, 2
    ),
    "a number that is too small": Mistake(
        "logs first -n -3", "--tail must be a whole number, 0 or more, not -3", {}, 2
    ),
    "half of a number": Mistake(
        "logs first -n 1.5", "--tail must be a whole number, 0 or more, not 1.5", {}, 2
    ),
    "a scope there is not": Mistake(
        "token add ci --scope amdin",
        "--scope must be one of delegate, view, operate, admin, not amdin; did you mean admin?",
        {},
        2,
    ),
    "no verb": Mistake(
        "worker", "bullpen worker needs one of add, ls, restart, rm (see: bullpen worker --help)", {}, 2
    ),
    "a time that has passed": Mistake(
        "queue add first later --at 2020-01-01T10:00",
        "--at needs a time in the future, not 2020-01-01T10:00",
        {},
        2,
    ),
    "a shell we do not know": Mistake(
        "completion tcsh", "SHELL must be one of bash, zsh, fish, not tcsh", {}, 2
    ),
    "a word we do not know for a busy agent": Mistake(
        "send first hello --busy never", "--busy must be one of queue, reject, interrupt, not never", {}, 2
    ),
    "a model for a terminal": Mistake(
        "new -d {workspace} --model large", "--model is for an agent; say which with --agent", {}, 2
    ),
    "to wait and not to": Mistake(
        "run hello -d --wait", "--detach and --wait exclude each other; leave one out", {}, 2
    ),
    "a letter that means a worktree elsewhere": Mistake(
        "send first hello -w", "No such option: -w (see: bullpen send --help)", {}, 2
    ),
    "a limit for no wait": Mistake("run hello --timeout 5", "--timeout limits the wait; add --wait", {}, 2),
    "a limit for no wait for an answer": Mistake(
        "send first hello --timeout 5", "--timeout limits the wait; add --wait", {}, 2
    ),
    "a value that is none": Mistake(
        "ls", "BULLPEN_PORT must be a whole number from 0 to 65535", {"BULLPEN_PORT": "many"}, 2
    ),
    "a word that is nearly right": Mistake(
        "ls",
        "BULLPEN_LOG_LEVEL must be one of debug, info, warning, error; did you mean info?",
        {"BULLPEN_LOG_LEVEL": "inof"},
        2,
    ),
}


def words_of(server: Server) -> dict[str, object]:
    return {"workspace": server.workspace, "home": server.home, "port": server.port}


async def make(mistake: Mistake, server: Server) -> CommandResult:
    words = words_of(server)
    env = {name: value.format(**words) for name, value in mistake.env.items()}
    return await Bullpen(server.environment() | env)(*mistake.command.format(**words).split())


async def test_every_mistake_is_answered_in_one_sentence(server: Server) -> None:
    words = words_of(server)
    expected = {
        name: CommandResult(mistake.code, "", f"bullpen: {mistake.answer.format(**words)}\n")
        for name, mistake in MISTAKES.items()
    }
    assert {name: await make(mistake, server) for name, mistake in MISTAKES.items()} == expected


async def test_a_missing_token_is_told_with_its_place(server: Server) -> None:
    bullpen = Bullpen(
        {name: value for name, value in server.environment().items() if name != "BULLPEN_TOKEN"}
    )
    token, aside = server.home / "token", server.home / "aside"
    token.rename(aside)
    try:
        done = await bullpen("ls")
    finally:
        aside.rename(token)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"bullpen: there is no token in {token}; set BULLPEN_TOKEN to a token of the server\n"


@pytest.mark.parametrize("verb", ["ls", "new -d", "show x", "stop x", "url", "token list", "repo ls"])
async def test_without_a_server_every_verb_says_how_to_start_it(lonely_bullpen: Bullpen, verb: str) -> None:
    done = await lonely_bullpen(*verb.split())
    assert (done.code, done.out) == (1, "")
    assert done.err == "bullpen: Bullpen is not running here; start it with: bullpen serve\n"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("prot = 1", "{file} has an unknown setting prot; did you mean port?"),
        ('port = "many"', "port in {file} must be a whole number from 0 to 65535"),
        ("port = ", "{file} is not valid TOML: Invalid value (at line 1, column 8)"),
    ],
)
async def test_a_bad_config_file_is_named_with_its_mistake(
    lonely_bullpen: Bullpen, tmp_path: Path, line: str, answer: str
) -> None:
    file = tmp_path / ".config" / "bullpen" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f"{line}\n")
    done = await lonely_bullpen("ls")
    assert (done.code, done.out, done.err) == (2, "", f"bullpen: {answer.format(file=file)}\n")
