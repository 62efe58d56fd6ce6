"""Commands that need no server: help, wrong arguments, settings, database, completion."""

import subprocess
import sys
from pathlib import Path

import pytest

from bullpen.cli.app import explain
from bullpen.cli.verbs import ALIASES, VERBS
from support.commands import Bullpen


async def test_help_names_every_verb(bullpen_without_server: Bullpen) -> None:
    done = await bullpen_without_server("--help")
    assert done.code == 0
    for verb, line in VERBS.items():
        assert verb in done.out
        assert line in done.out


@pytest.mark.parametrize("verb", VERBS)
async def test_every_verb_has_help(bullpen_without_server: Bullpen, verb: str) -> None:
    done = await bullpen_without_server(verb, "-h")
    assert (done.code, done.err) == (0, "")
    assert f"Usage: bullpen {verb}" in done.out


def test_help_imports_no_verb_and_no_expensive_module() -> None:
    script = (
        "import sys\n"
        "from bullpen.cli.app import run\n"
        "run(['--help'])\n"
        "expensive = {'httpx', 'websockets', 'msgspec', 'asyncio', 'sqlalchemy', 'bullpen.client'}\n"
        "print(expensive & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "set()"


@pytest.mark.parametrize("arguments", [["ls"], ["show", "x"], ["worker", "ls", "x"]], ids=" ".join)
def test_a_command_imports_only_what_it_needs(bullpen_without_server: Bullpen, arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from bullpen.cli.app import run\n"
        f"run({arguments})\n"
        "expensive = 'pydantic websockets httpx structlog uvloop sqlalchemy fastapi'\n"
        "print(sorted(set(expensive.split()) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=bullpen_without_server.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("atach",), 2, "Did you mean 'attach'?"),
        (("ls", "--nonsense"), 2, "--nonsense"),
        (("attach",), 2, "SESSION|WORKER"),
        (("serve", "--port", "many"), 2, "--port must be a whole number"),
        (("serve", "--log-level", "inf"), 2, "did you mean info?"),
        (("serve", "--host", "0.0.0.0"), 2, "--tls-certificate"),
        (("serve", "--token-file", "missing"), 2, "--token-file cannot be read"),
        (("completion", "tcsh"), 2, "tcsh"),
        (("ls",), 1, "start it with: bullpen serve"),
        (("new", "-d"), 1, "start it with: bullpen serve"),
        (("stop", "x"), 1, "start it with: bullpen serve"),
        (("attach", "x"), 2, "needs a terminal"),
        (("status",), 1, "start it with: bullpen serve"),
        (("url",), 1, "start it with: bullpen serve"),
    ],
)
async def test_an_error_is_one_sentence_with_advice(
    bullpen_without_server: Bullpen, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    done = await bullpen_without_server(*arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("bullpen: ")
    assert done.err.count("\n") == 1
    assert sentence in done.err


@pytest.mark.parametrize(
    ("command", "meaning", "out"),
    [
        ("version", "--version", "bullpen "),
        ("help", "--help", "Usage: bullpen [OPTIONS]"),
        ("help show", "--help", "Usage: bullpen show"),
        ("resume --help", "restart --if-ended", "Usage: bullpen restart"),
        ("continue --help", "restart --if-ended", "Usage: bullpen restart"),
        ("deny --help", "approve --deny", "Usage: bullpen approve"),
        ("tail --help", "logs -f", "Usage: bullpen logs"),
    ],
)
async def test_an_alias_runs_its_command_and_names_it(
    bullpen_without_server: Bullpen, command: str, meaning: str, out: str
) -> None:
    alias, *rest = command.split()
    done = await bullpen_without_server(alias, *rest)
    assert (done.code, done.err) == (0, f"bullpen: {alias} is `bullpen {meaning}` here\n")
    assert done.out.strip().startswith(out.strip())


@pytest.mark.parametrize(("alias", "verb"), ALIASES.items())
async def test_every_alias_stands_for_an_existing_command(
    bullpen_without_server: Bullpen, alias: str, verb: str
) -> None:
    assert alias not in VERBS
    # An unknown option in an alias would be refused before the help is printed.
    done = await bullpen_without_server(alias, "--help")
    assert (done.code, done.err) == (0, f"bullpen: {alias} is `bullpen {verb}` here\n")
    first_word = "" if verb.startswith("-") else verb.partition(" ")[0]
    assert done.out.lstrip().startswith(f"Usage: bullpen {first_word}")


async def test_without_arguments_and_terminal_the_command_prints_help(
    bullpen_without_server: Bullpen,
) -> None:
    done = await bullpen_without_server()
    assert done.code == 0
    assert "Usage: bullpen" in done.out


async def test_the_version_is_printed(bullpen_without_server: Bullpen) -> None:
    assert (await bullpen_without_server("--version")).out.startswith("bullpen ")


def test_an_unexpected_exception_is_one_sentence_unless_debugging_is_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explain(ZeroDivisionError("oh")) == 1
    assert capsys.readouterr().err == (
        "bullpen: an internal error, ZeroDivisionError: oh; BULLPEN_DEBUG=1 shows where\n"
    )
    monkeypatch.setenv("BULLPEN_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        explain(ZeroDivisionError("oh"))


async def test_the_database_is_downgraded_and_upgraded(
    bullpen_without_server: Bullpen, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    assert (await bullpen_without_server("db", "upgrade")).code == 0
    newest = (await bullpen_without_server("db", "current")).out
    assert (await bullpen_without_server("db", "downgrade", "base", "--yes")).code == 0
    assert "empty" in (await bullpen_without_server("db", "current")).out
    assert (await bullpen_without_server("db", "upgrade")).code == 0
    assert (await bullpen_without_server("db", "current")).out == newest
    refused = await bullpen_without_server("db", "upgrade", "nowhere")
    assert refused.code == 2
    assert "nowhere" in refused.err


@pytest.mark.parametrize(
    ("line", "completion"),
    [
        ("bullpen at", "attach"),
        ("bullpen worker re", "restart"),
        ("bullpen token ro", "rotate"),
        ("bullpen ls --js", "--json"),
        ("bullpen token add ci --scope vi", "view"),
    ],
)
async def test_the_shell_completes_verbs_and_options(
    bullpen_without_server: Bullpen, line: str, completion: str
) -> None:
    script = await bullpen_without_server("completion", "bash")
    assert "_BULLPEN_COMPLETE" in script.out
    bullpen_without_server.env |= {
        "_BULLPEN_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
    }
    assert f"plain,{completion}" in (await bullpen_without_server()).out.split()


def test_a_closed_output_pipe_is_no_error(bullpen_without_server: Bullpen) -> None:
    command = f"{sys.executable} -m bullpen config --json | true"
    done = subprocess.run(
        ["bash", "-c", command], env=bullpen_without_server.env, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
