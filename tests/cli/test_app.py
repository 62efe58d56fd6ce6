"""The command line before any server is asked: help, mistakes, settings."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bullpen.cli.app import explain
from bullpen.cli.verbs import ALIASES, VERBS
from support.commands import Bullpen


async def test_help_names_every_verb(lonely_bullpen: Bullpen) -> None:
    done = await lonely_bullpen("--help")
    assert done.code == 0
    for verb, line in VERBS.items():
        assert verb in done.out
        assert line in done.out


@pytest.mark.parametrize("verb", VERBS)
async def test_every_verb_has_help(lonely_bullpen: Bullpen, verb: str) -> None:
    done = await lonely_bullpen(verb, "-h")
    assert (done.code, done.err) == (0, "")
    assert f"Usage: bullpen {verb}" in done.out


def test_help_imports_no_verb_and_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from bullpen.cli.app import run\n"
        "run(['--help'])\n"
        "heavy = {'httpx', 'websockets', 'rich', 'msgspec', 'asyncio', 'sqlalchemy', 'bullpen.client'}\n"
        "print(heavy & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "set()"


@pytest.mark.parametrize("arguments", [["ls"], ["show", "x"], ["worker", "ls", "x"]], ids=" ".join)
def test_a_command_imports_only_what_it_needs(lonely_bullpen: Bullpen, arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from bullpen.cli.app import run\n"
        f"run({arguments})\n"
        "heavy = 'pydantic websockets rich httpx structlog uvloop sqlalchemy fastapi'\n"
        "print(sorted(set(heavy.split()) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=lonely_bullpen.env, capture_output=True, text=True, check=True
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
async def test_a_mistake_is_one_sentence_that_helps(
    lonely_bullpen: Bullpen, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    done = await lonely_bullpen(*arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("bullpen: ")
    assert done.err.count("\n") == 1
    assert sentence in done.err


@pytest.mark.parametrize(
    ("typed", "meant", "out"),
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
async def test_a_verb_of_another_program_is_done_and_named(
    lonely_bullpen: Bullpen, typed: str, meant: str, out: str
) -> None:
    theirs, *rest = typed.split()
    done = await lonely_bullpen(theirs, *rest)
    assert (done.code, done.err) == (0, f"bullpen: {theirs} is `bullpen {meant}` here\n")
    assert done.out.strip().startswith(out.strip())


@pytest.mark.parametrize(("theirs", "ours"), ALIASES.items())
async def test_every_verb_of_another_program_stands_for_one_of_ours(
    lonely_bullpen: Bullpen, theirs: str, ours: str
) -> None:
    assert theirs not in VERBS
    done = await lonely_bullpen(theirs, "--help")  # an option that is not ours is refused before the help
    assert (done.code, done.err) == (0, f"bullpen: {theirs} is `bullpen {ours}` here\n")
    verb = "" if ours.startswith("-") else ours.partition(" ")[0]
    assert done.out.lstrip().startswith(f"Usage: bullpen {verb}")


async def test_alone_in_a_script_it_prints_help(lonely_bullpen: Bullpen) -> None:
    done = await lonely_bullpen()
    assert done.code == 0
    assert "Usage: bullpen" in done.out


async def test_the_version_is_printed(lonely_bullpen: Bullpen) -> None:
    assert (await lonely_bullpen("--version")).out.startswith("bullpen ")


def test_what_nobody_expected_is_a_sentence_unless_debugging(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explain(ZeroDivisionError("oh")) == 1
    assert capsys.readouterr().err == (
        "bullpen: an internal error, ZeroDivisionError: oh; BULLPEN_DEBUG=1 shows where\n"
    )
    monkeypatch.setenv("BULLPEN_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        explain(ZeroDivisionError("oh"))


async def test_config_says_where_each_value_comes_from(lonely_bullpen: Bullpen, tmp_path: Path) -> None:
    lonely_bullpen.env |= {"BULLPEN_PORT": "8123", "BULLPEN_TOKEN": "very-secret"}
    file = tmp_path / ".config" / "bullpen" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("max_sessions = 9\n")
    done = await lonely_bullpen("config", "--json")
    settings = json.loads(done.out)["settings"]
    assert settings["port"] == {"value": 8123, "source": "environment"}
    assert settings["max_sessions"] == {"value": 9, "source": str(file)}
    assert settings["host"] == {"value": "127.0.0.1", "source": "default"}
    shown = await lonely_bullpen("config")
    assert "8123" in shown.out
    assert "very-secret" not in done.out + shown.out


async def test_an_unknown_setting_is_named_with_the_nearest_right_word(
    lonely_bullpen: Bullpen, tmp_path: Path
) -> None:
    file = tmp_path / ".config" / "bullpen" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("prot = 1\n")
    done = await lonely_bullpen("ls")
    assert done.code == 2
    assert "did you mean port?" in done.err


async def test_the_database_goes_down_and_up(lonely_bullpen: Bullpen, tmp_path: Path) -> None:
    (tmp_path / "nobody").mkdir()
    assert (await lonely_bullpen("db", "upgrade")).code == 0
    newest = (await lonely_bullpen("db", "current")).out
    assert (await lonely_bullpen("db", "downgrade", "base", "--yes")).code == 0
    assert "empty" in (await lonely_bullpen("db", "current")).out
    assert (await lonely_bullpen("db", "upgrade")).code == 0
    assert (await lonely_bullpen("db", "current")).out == newest
    refused = await lonely_bullpen("db", "upgrade", "nowhere")
    assert refused.code == 2
    assert "nowhere" in refused.err


@pytest.mark.parametrize(
    ("words", "offered"),
    [("bullpen at", "attach"), ("bullpen worker re", "restart"), ("bullpen ls --js", "--json")],
)
async def test_the_shell_completes(lonely_bullpen: Bullpen, words: str, offered: str) -> None:
    script = await lonely_bullpen("completion", "bash")
    assert "_BULLPEN_COMPLETE" in script.out
    lonely_bullpen.env |= {
        "_BULLPEN_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    assert offered in (await lonely_bullpen()).out.split()


def test_a_reader_that_leaves_is_no_error(lonely_bullpen: Bullpen) -> None:
    command = f"{sys.executable} -m bullpen config --json | true"
    done = subprocess.run(
        ["bash", "-c", command], env=lonely_bullpen.env, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
