"""No content of a repository makes a function of the server that calls git run a program."""

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.domain.errors import BullpenError
from bullpen.git.run import run_git
from git.git_callers import GIT_CALLERS, call_git
from support.git_exploits import EXPLOITS, Exploit, HostileRepository

SRC = Path(__file__).parents[2] / "src" / "bullpen"


@pytest.fixture
def trap(tmp_path: Path) -> HostileRepository:
    return HostileRepository(tmp_path)


def callers_of(name: str) -> Iterator[str]:
    """Yield the functions that call the function `name`."""
    for path in (each for each in sorted(SRC.rglob("*.py")) if name in each.read_text()):
        module = ".".join(path.relative_to(SRC).with_suffix("").parts)
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.AsyncFunctionDef | ast.FunctionDef):
                called = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
                if any(isinstance(each, ast.Name) and each.id == name for each in called):
                    yield f"{module}.{function.name}"


def test_every_function_that_calls_git_is_tested() -> None:
    assert set(callers_of("run_git")) == set(GIT_CALLERS)
    assert set(callers_of("start_git")) == {
        "git.run.run_git",
        "git.overlays._parse",
        "git.clone.clone_repository",
    }


def test_only_one_module_starts_git() -> None:
    started = [
        path.relative_to(SRC)
        for path in SRC.rglob("*.py")
        if '"git"' in path.read_text() and path.parent.name != "checkup"
    ]
    # The probes of the sandbox create a repository of their own.
    assert sorted(started) == [Path("git/command.py"), Path("sandbox/probe_stage.py")]


@pytest.mark.parametrize("plant", EXPLOITS, ids=lambda plant: plant.__name__)
def test_a_hostile_repository_makes_plain_git_run_its_program(
    trap: HostileRepository, plant: Exploit
) -> None:
    plant(trap)
    directory, call = trap.repo.path, EXPLOITS[plant]
    if call[0].startswith("@"):
        directory, call = trap.linked.work_tree if call[0] == "@" else trap.repo.path / call[0][1:], call[1:]
    words = [word.format(top=trap.top, canary=trap.canary) for word in call]
    trap.repo.git(*words, cwd=directory, check=False)
    assert trap.canary.exists()


@pytest.mark.parametrize("plant", EXPLOITS, ids=lambda plant: plant.__name__)
async def test_no_function_that_calls_git_runs_the_program_of_a_hostile_repository(
    trap: HostileRepository, plant: Exploit
) -> None:
    plant(trap)
    trap.canary.unlink(missing_ok=True)
    for name, caller in GIT_CALLERS.items():
        async with asyncio.timeout(30):
            await call_git(caller, trap)
        assert not trap.canary.exists(), f"{name} ran the program of {plant.__name__}"


@pytest.mark.parametrize("verb", ["diff", "show", "log", "blame"])
async def test_a_ref_that_looks_like_an_option_is_a_ref(trap: HostileRepository, verb: str) -> None:
    for ref in (f"--output={trap.canary}", f"-O{trap.canary}", f"--ext-diff={trap.program}"):
        with pytest.raises(BullpenError):
            await run_git(trap.repo.git_directories, verb, refs=[ref], paths=["src/code.txt"])
    assert not trap.canary.exists()


@pytest.mark.parametrize("plant", EXPLOITS, ids=lambda plant: plant.__name__)
async def test_no_command_that_shows_content_runs_the_program_of_a_hostile_repository(
    trap: HostileRepository, plant: Exploit
) -> None:
    plant(trap)
    trap.canary.unlink(missing_ok=True)
    for place in trap.all_git_directories:
        for words in (("diff",), ("diff", "HEAD"), ("show",), ("log", "-p"), ("blame", "src/more.txt")):
            try:
                await run_git(place, words[0], *words[1:])
            except BullpenError:
                continue
            finally:
                assert not trap.canary.exists(), f"git {words} ran the program of {plant.__name__}"
