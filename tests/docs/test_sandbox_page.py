"""The commands and settings of docs/sandbox.md work as the page says."""

import asyncio
from pathlib import Path

import pytest

from bullpen import config
from bullpen.agents.definitions import read_file
from bullpen.sandbox import mechanism
from docs.page_examples import ROOT, run_line, uses_examples
from support.repositories import Repo
from support.sandboxed_runs import SandboxedRuns
from support.server import Server


@uses_examples(
    "docs/sandbox.md",
    "bullpen sandbox allow pypi.example.org",
    "bullpen sandbox allow ~/datasets",
    "bullpen sandbox ls",
    "bullpen sandbox rm",
)
async def test_the_commands_of_the_page_allow_list_and_remove(
    shown_examples: list[str], server: Server, tmp_path: Path
) -> None:
    repository = Repo(server.workspace / "shop")
    await server.call("POST", "/api/repositories", 201, json={"path": str(repository.path)})
    host, path, listing, removing = shown_examples
    environment = server.environment()
    await server_line(server, host, tmp_path)
    await server_line(server, path, tmp_path)
    listed = await server_line(server, listing, tmp_path)
    assert "pypi.example.org" in listed
    assert f"{environment['HOME']}/datasets" in listed
    await server_line(server, removing, tmp_path)
    assert "pypi.example.org" not in await server_line(server, listing, tmp_path)


async def server_line(server: Server, line: str, directory: Path) -> str:
    return await asyncio.to_thread(run_line, line, directory, server.environment())


@uses_examples("docs/sandbox.md", "bullpen sandbox allow --write")
async def test_a_path_can_be_allowed_for_writing(
    shown_examples: list[str], server: Server, tmp_path: Path
) -> None:
    assert "write /srv/cache" in await server_line(server, shown_examples[0], tmp_path)


@uses_examples("docs/sandbox.md", 'sandbox = "open"', 'sandbox = "sealed"')
def test_a_level_is_a_setting_and_a_field_of_an_agent_definition(
    shown_examples: list[str], tmp_path: Path
) -> None:
    of_settings, of_agent = shown_examples
    (tmp_path / "bullpen").mkdir()
    (tmp_path / "bullpen/config.toml").write_text(of_settings)
    assert config.load({}, {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}).sandbox == "open"
    definition = tmp_path / "mine.toml"
    definition.write_text(f'name = "Mine"\nkind = "acp"\ncommand = ["mine"]\n{of_agent}\n')
    assert read_file(definition).sandbox == "sealed"


@uses_examples("docs/sandbox.md", "git config", "git remote add", "git branch --set-upstream-to")
def test_git_cannot_change_its_configuration(
    shown_examples: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    runs = SandboxedRuns(tmp_path)
    repository = Repo(runs.workspace)
    repository.git("branch", "other")
    arguments = {"git config": "user.name x", "git remote add": "origin ..", "git branch": "=other"}
    for shown in shown_examples:
        rest = next(each for start, each in arguments.items() if shown.startswith(start))
        line = f"{shown}{'' if rest.startswith('=') else ' '}{rest}"
        before = (repository.git_dir / "config").read_bytes()
        assert "config" in runs.run(line).stderr, line
        assert (repository.git_dir / "config").read_bytes() == before, line
        runs.run(line, "open")
        assert (repository.git_dir / "config").read_bytes() != before, line


@uses_examples(
    "docs/sandbox.md",
    "sudo apt install bubblewrap",
    "sudo dnf install bubblewrap",
    "sudo apparmor_parser -r /etc/apparmor.d/bwrap",
)
def test_the_advice_of_the_page_is_that_of_the_program(shown_examples: list[str]) -> None:
    advice = f"{mechanism.INSTALL} {mechanism.ALLOW_IN_APPARMOR}"
    assert [each for each in shown_examples if each not in advice] == []
    assert mechanism.APPARMOR_PROFILE in (ROOT / "docs/sandbox.md").read_text()
