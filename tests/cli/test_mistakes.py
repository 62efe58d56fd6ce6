"""Common mistakes of users: each is answered with one sentence and advice, never with a traceback."""

from pathlib import Path
from typing import NamedTuple

import pytest

from support.commands import Bullpen, CommandResult
from support.server import Server


class Mistake(NamedTuple):
    """A wrong command with its error message, variables and exit code; {…} is a placeholder."""

    command: str
    message: str
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
    "an invalid address": Mistake(
        "ls",
        "BULLPEN_URL must look like http://127.0.0.1:7420, not localhost",
        {"BULLPEN_URL": "localhost"},
        2,
    ),
    "no server at an address": Mistake(
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
    "a directory that does not exist": Mistake(
        "new -d {workspace}/site", "there is no directory {workspace}/site", {}
    ),
    "a directory that is no repository": Mistake(
        "repo add {workspace}", "{workspace} is not a git repository; run `git init` there first", {}, 2
    ),
    "a misspelled verb": Mistake(
        "atach first", "No such command 'atach'. Did you mean 'attach'? (see: bullpen --help)", {}, 2
    ),
    "a misspelled verb of a group": Mistake(
        "worker ad", "No such command 'ad'. Did you mean 'add'? (see: bullpen worker --help)", {}, 2
    ),
    "a misspelled option": Mistake(
        "ls --jsn", "No such option '--jsn'. Did you mean '--json'? (see: bullpen ls --help)", {}, 2
    ),
    "a missing argument": Mistake(
        "stop", "Missing argument 'SESSION|WORKER...' (see: bullpen stop --help)", {}, 2
    ),
    "a word instead of a number": Mistake(
        "wait first --timeout soon", "--timeout must be a number, 0 or more, not soon", {}, 2
    ),
    "not a number as a time": Mistake(
        "wait first --timeout nan", "--timeout must be a number, 0 or more, not nan", {}, 2
    ),
    "a number that is too small": Mistake(
        "logs first -n -3", "--tail must be a whole number, 0 or more, not -3", {}, 2
    ),
    "a fraction instead of a whole number": Mistake(
        "logs first -n 1.5", "--tail must be a whole number, 0 or more, not 1.5", {}, 2
    ),
    "an unknown scope": Mistake(
        "token add ci --scope amdin",
        "--scope must be one of delegate, view, operate, admin, not amdin; did you mean admin?",
        {},
        2,
    ),
    "a group without a verb": Mistake(
        "worker", "bullpen worker needs one of add, ls, restart, rm (see: bullpen worker --help)", {}, 2
    ),
    "a time that has passed": Mistake(
        "queue add first later --at 2020-01-01T10:00",
        "--at needs a time in the future, not 2020-01-01T10:00",
        {},
        2,
    ),
    "an unknown shell": Mistake("completion tcsh", "SHELL must be one of bash, zsh, fish, not tcsh", {}, 2),
    "an unknown value of --busy": Mistake(
        "send first hello --busy never", "--busy must be one of queue, reject, interrupt, not never", {}, 2
    ),
    "a model for a terminal": Mistake(
        "new -d {workspace} --model large", "--model is for an agent; say which with --agent", {}, 2
    ),
    "options that exclude each other": Mistake(
        "run hello -d --wait", "--detach and --wait exclude each other; leave one out", {}, 2
    ),
    "an option of another verb": Mistake(
        "send first hello -w", "No such option '-w' (see: bullpen send --help)", {}, 2
    ),
    "a time limit of run without --wait": Mistake(
        "run hello --timeout 5", "--timeout limits the wait; add --wait", {}, 2
    ),
    "a time limit of send without --wait": Mistake(
        "send first hello --timeout 5", "--timeout limits the wait; add --wait", {}, 2
    ),
    "an invalid value in the environment": Mistake(
        "ls", "BULLPEN_PORT must be a whole number from 0 to 65535", {"BULLPEN_PORT": "many"}, 2
    ),
    "a misspelled value in the environment": Mistake(
        "ls",
        "BULLPEN_LOG_LEVEL must be one of debug, info, warning, error; did you mean info?",
        {"BULLPEN_LOG_LEVEL": "inof"},
        2,
    ),
}


def placeholders_of(server: Server) -> dict[str, object]:
    return {"workspace": server.workspace, "home": server.home, "port": server.port}


async def run_mistake(mistake: Mistake, server: Server) -> CommandResult:
    placeholders = placeholders_of(server)
    env = {name: value.format(**placeholders) for name, value in mistake.env.items()}
    return await Bullpen(server.environment() | env)(*mistake.command.format(**placeholders).split())


async def test_every_mistake_is_answered_with_one_sentence(server: Server) -> None:
    placeholders = placeholders_of(server)
    expected = {
        name: CommandResult(mistake.code, "", f"bullpen: {mistake.message.format(**placeholders)}\n")
        for name, mistake in MISTAKES.items()
    }
    assert {name: await run_mistake(mistake, server) for name, mistake in MISTAKES.items()} == expected


async def test_a_missing_token_is_reported_with_its_path(server: Server) -> None:
    bullpen = Bullpen(
        {name: value for name, value in server.environment().items() if name != "BULLPEN_TOKEN"}
    )
    token, moved_token = server.home / "token", server.home / "aside"
    token.rename(moved_token)
    try:
        done = await bullpen("ls")
    finally:
        moved_token.rename(token)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"bullpen: there is no token in {token}; set BULLPEN_TOKEN to a token of the server\n"


@pytest.mark.parametrize("verb", ["ls", "new -d", "show x", "stop x", "url", "token list", "repo ls"])
async def test_without_a_server_every_verb_says_how_to_start_it(
    bullpen_without_server: Bullpen, verb: str
) -> None:
    done = await bullpen_without_server(*verb.split())
    assert (done.code, done.out) == (1, "")
    assert done.err == "bullpen: Bullpen is not running here; start it with: bullpen serve\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("prot = 1", "{file} has an unknown setting prot; did you mean port?"),
        ('port = "many"', "port in {file} must be a whole number from 0 to 65535"),
        ("port = ", "{file} is not valid TOML: Invalid value (at line 1, column 8)"),
    ],
)
async def test_an_invalid_configuration_file_is_named_with_its_error(
    bullpen_without_server: Bullpen, tmp_path: Path, line: str, message: str
) -> None:
    file = tmp_path / ".config" / "bullpen" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f"{line}\n")
    done = await bullpen_without_server("ls")
    assert (done.code, done.out, done.err) == (2, "", f"bullpen: {message.format(file=file)}\n")
