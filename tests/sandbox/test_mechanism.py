"""Which mechanism is used on a machine where bubblewrap is missing or does not work."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from bullpen.domain.errors import Conflict
from bullpen.sandbox import mechanism
from bullpen.sandbox.command import command_for, sandboxed_command
from bullpen.sandbox.mechanism import INSTALL, LANDLOCK_GAPS, Mechanism, describe_mechanism, find_mechanism
from bullpen.sandbox.profile import OPEN, Profile
from support.server import SECONDS, Server

WORKSPACE = Profile(level="workspace", workspace="/")
# What bwrap prints where a seccomp filter, a sysctl or AppArmor refuses user namespaces.
REFUSAL = "bwrap: No permissions to create new namespace, likely because the kernel does not allow it"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a directory of programs with all that a sandbox needs except bwrap."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("env", "true", "sh"):
        (directory / name).symlink_to(shutil.which(name) or name)
    return directory


@pytest.fixture
def refusing(programs: Path) -> Path:
    """Add a bwrap that ends as the real one does where namespaces are refused."""
    (programs / "bwrap").write_text(f"#!/bin/sh\necho '{REFUSAL}' >&2\nexit 1\n")
    (programs / "bwrap").chmod(0o755)
    return programs


def test_bubblewrap_is_used_where_it_works() -> None:
    found = find_mechanism(os.environ)
    assert (found.name, found.problem, found.gaps) == ("bubblewrap", "", ())


def test_landlock_is_used_and_its_gaps_are_listed_without_bubblewrap(programs: Path) -> None:
    found = find_mechanism({"PATH": str(programs)})
    assert (found.name, found.problem, found.advice) == ("landlock", "bubblewrap is not installed", INSTALL)
    assert found.gaps == LANDLOCK_GAPS


def test_landlock_is_used_where_namespaces_are_refused_and_the_reason_is_kept(refusing: Path) -> None:
    found = find_mechanism({"PATH": str(refusing)})
    assert found.name == "landlock"
    assert REFUSAL in found.problem
    assert "namespaces" in found.advice


def test_one_line_names_the_sandbox_and_how_to_get_a_better_one(programs: Path) -> None:
    full = Mechanism(name="bubblewrap")
    assert describe_mechanism(full, "workspace").startswith("Agents run in a sandbox (bubblewrap), ")
    assert "without a sandbox" in describe_mechanism(full, "open")
    weaker = describe_mechanism(find_mechanism({"PATH": str(programs)}), "workspace")
    assert weaker.startswith("Agents run in a weaker sandbox (Landlock): bubblewrap is not installed.")
    assert INSTALL in weaker
    none = describe_mechanism(Mechanism(name="none", problem="it is gone", advice=INSTALL), "workspace")
    assert none == f"Agents cannot be started: it is gone. To change that: {INSTALL}"


def test_on_ubuntu_the_advice_is_a_profile_of_apparmor(
    refusing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "restricted").write_text("1\n")
    monkeypatch.setattr(mechanism, "_APPARMOR", str(tmp_path / "restricted"))
    assert "apparmor_parser" in find_mechanism({"PATH": str(refusing)}).advice


def test_without_both_nothing_starts_and_the_error_says_what_to_do(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mechanism, "landlock_abi", lambda: 0)
    found = find_mechanism({"PATH": str(programs)})
    assert found.name == "none"
    with pytest.raises(Conflict, match=r"apt install bubblewrap.*choose the sandbox level open"):
        command_for(found, WORKSPACE, ["true"], "/")


def test_landlock_refuses_a_sealed_run() -> None:
    sealed = Profile(level="sealed", workspace="/", has_network=False)
    with pytest.raises(Conflict, match="needs bubblewrap"):
        command_for(Mechanism(name="landlock"), sealed, ["true"], "/")


async def test_an_open_run_is_not_wrapped() -> None:
    assert await sandboxed_command(OPEN, ["true"], {"LD_PRELOAD": "x"}, "/") == (
        ["true"],
        {"LD_PRELOAD": "x"},
    )


async def test_the_start_says_in_one_line_which_sandbox_agents_have(server: Server, programs: Path) -> None:
    (programs / "git").symlink_to(os.path.realpath(shutil.which("git") or "git"))
    await wait_for_output(server, "Agents run in a sandbox (bubblewrap), which hides")
    server.set(PATH=str(programs))
    await server.restart()
    await wait_for_output(server, "Agents run in a weaker sandbox (Landlock): bubblewrap is not installed.")


async def wait_for_output(server: Server, text: str) -> None:
    async with asyncio.timeout(SECONDS):
        while text not in server.output():
            await asyncio.sleep(0.02)
