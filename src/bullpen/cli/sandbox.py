"""`bullpen sandbox`: show what the runs of a session can reach, or try the sandbox of this machine."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..client import Client, GrantedAccess, MachineSandbox, RunSandboxAccess, Worker
from ..domain.errors import NotFound
from .find import find_repository, find_session
from .output import print_json
from .session_place import absolute
from .table import TableColumn, path_column, print_table
from .text import describe_limit, paint, short
from .verb import json_option, with_client
from .verb_group import VerbGroup

if TYPE_CHECKING:
    from ..sandbox.probes import ProbeResult

sandbox = VerbGroup(help="Show or extend what agents can read, write and reach.")

_RUNS = (TableColumn("ROLE", least=8), TableColumn("TYPE"), TableColumn("SANDBOX"))


_GRANTS = (TableColumn("ID"), TableColumn("MAY"), path_column("TARGET", least=12), TableColumn("SESSIONS OF"))


@sandbox.command()
@json_option
def ls(json: bool) -> None:
    """List the hosts and paths that you have allowed."""
    grants, names = with_client(_fetch_grants)
    if json:
        print_json({"grants": grants})
    elif grants:
        rows = [[short(each.id), each.kind, each.target, names.get(each.repo_id, "all")] for each in grants]
        print_table(_GRANTS, rows)
    else:
        print("nothing is allowed beside the levels; see: bullpen sandbox allow --help")


@sandbox.command()
@click.argument("target", help="A host (`name`, `.name` with all subdomains, `name:port`), or a path.")
@click.option("--write", is_flag=True, help="Allow writing the path too.")
@click.option("--repo", help="Only for the sessions of this repository.")
@json_option
def allow(target: str, write: bool, repo: str | None, json: bool) -> None:
    """Allow sealed agents to reach a host, or all sandboxed agents to read a path.

    A path is seen by runs that start afterwards, a host at once.

    \b
    Examples:
      bullpen sandbox allow pypi.example.org --repo shop
      bullpen sandbox allow ~/datasets
      bullpen sandbox allow --write /srv/cache
    """
    is_path = target.startswith(("/", "~", ".")) and not _is_domain(target)
    kind = ("write" if write else "read") if is_path else "host"
    if write and not is_path:
        raise click.UsageError("--write is for a path")
    place = str(absolute(Path(target).expanduser())) if is_path else target

    async def work(client: Client) -> GrantedAccess:
        repo_id = (await find_repository(client, repo)).id if repo else None
        return await client.allow_in_sandbox(kind, place, repo_id)

    grant = with_client(work)
    if json:
        print_json(grant)
    else:
        print(f"allowed: {grant.kind} {grant.target}")


@sandbox.command()
@click.argument("grant", help="The id of a grant, its beginning, or its target.")
def rm(grant: str) -> None:
    """Remove what you have allowed. Runs that have begun keep their paths."""

    async def work(client: Client) -> GrantedAccess:
        found = [
            each
            for each in await client.sandbox_grants()
            if each.id.startswith(grant) or each.target == grant
        ]
        if len(found) != 1:
            raise NotFound(f"{len(found)} grants match {grant}; see: bullpen sandbox ls")
        await client.remove_sandbox_grant(found[0].id)
        return found[0]

    removed = with_client(work)
    print(f"no longer allowed: {removed.kind} {removed.target}")


@sandbox.command()
@click.argument("session", required=False, help="A session; without one, only this machine is described.")
@json_option
def show(session: str | None, json: bool) -> None:
    """Show the sandbox of this machine, and what each agent and terminal of a session can do.

    \b
    Examples:
      bullpen sandbox show
      bullpen sandbox show fix-login --json
    """
    machine, runs = with_client(lambda client: _fetch(client, session))
    if json:
        workers = [
            {"id": each.id, "role": each.role, "sandbox": each.sandbox, "access": access}
            for each, access in runs
        ]
        print_json({"machine": machine, "workers": workers})
        return
    _print_machine(machine)
    if session is not None:
        print()
        print_table(_RUNS, [[each.role, each.type, each.sandbox or "none"] for each, _ in runs])
    for worker, access in runs:
        if access.level != "open":
            print(f"\n{worker.role}")
            _print_lines(_access_lines(access))


@sandbox.command()
@click.option(
    "--mechanism",
    type=click.Choice(["bubblewrap", "landlock"]),
    help="Try this one; by default the one that this machine uses.",
)
@json_option
def test(mechanism: str | None, json: bool) -> int:
    """Try, inside a sandbox, what it must prevent. Exits with 1 if an attempt has another result.

    Nothing of yours is touched: the attempts aim at a new temporary directory and at a process made for them.

    \b
    Examples:
      bullpen sandbox test
      bullpen sandbox test --mechanism landlock --json
    """
    from ..sandbox.mechanism import APPARMOR_PROFILE, Mechanism, find_mechanism  # noqa: PLC0415
    from ..sandbox.probes import run_probes  # noqa: PLC0415

    found = find_mechanism(os.environ) if mechanism != "landlock" else Mechanism(name="landlock")
    if found.name == "none" or mechanism not in (None, found.name):
        raise click.ClickException(f"{found.problem}. {found.advice}\n\n{APPARMOR_PROFILE}")
    results = run_probes(found, os.environ)
    if json:
        print_json({"mechanism": found.name, "probes": [_as_json(each) for each in results]})
    else:
        _print_results(found.name, results)
    return 0 if all(each.is_right for each in results) else 1


def _print_machine(machine: MachineSandbox) -> None:
    """Print what enforces the levels, what it does not protect, and the levels without a choice."""
    lines = {
        "mechanism": [machine.mechanism],
        "problem": [machine.problem] if machine.problem else [],
        "advice": [machine.advice] if machine.advice else [],
        "gap": machine.gaps,
        "agents": [machine.agents],
        "terminals": [machine.terminals],
        "limit": [describe_limit(each) for each in machine.limits],
    }
    _print_lines(lines)


def _access_lines(access: RunSandboxAccess) -> dict[str, list[str]]:
    """Return the lines that say what a run can do."""
    network = ["yours"] if access.has_network else access.hosts or ["none"]
    return {
        "writes": access.writable,
        "but reads": access.protected,
        "reads": access.readable,
        "hidden": access.hidden,
        "network": network,
    }


def _print_lines(lines: Mapping[str, list[str]]) -> None:
    """Print the texts of each name in two columns."""
    for name, texts in lines.items():
        for text in texts:
            print(f"{name:<9}  {text}")


def _print_results(mechanism: str, results: "list[ProbeResult]") -> None:
    """Print a row for each probe with its result at each level."""
    levels = list(dict.fromkeys(each.level for each in results))
    columns = [TableColumn("ATTEMPT", least=20), *(TableColumn(level.upper()) for level in levels)]
    rows = {
        name: [_describe(each) for each in results if each.probe == name]
        for name in dict.fromkeys(each.probe for each in results)
    }
    print_table(columns, [[name, *cells] for name, cells in rows.items()])
    wrong = sum(not each.is_right for each in results)
    colour, text = ("red", f"{wrong} are not as expected") if wrong else ("green", "all as expected")
    print(f"\n{len(results)} attempts with {mechanism}: {paint(text, colour)}")


def _describe(result: "ProbeResult") -> str:
    """Return the result of an attempt as a word, with a mark if it is wrong."""
    return ("succeeds" if result.succeeded else "denied") + ("" if result.is_right else " (!)")


def _as_json(result: "ProbeResult") -> dict[str, Any]:
    """Return the result of an attempt as JSON."""
    return {
        "probe": result.probe,
        "level": result.level,
        "succeeded": result.succeeded,
        "expected": result.expected,
    }


def _is_domain(target: str) -> bool:
    """Return whether a text is `.name`, a host with all its subdomains, and not a relative path."""
    return target.startswith(".") and "/" not in target and target.strip(".") != ""


async def _fetch_grants(client: Client) -> tuple[list[GrantedAccess], dict[str | None, str]]:
    """Return the grants, and the names of the repositories by id."""
    return await client.sandbox_grants(), {each.id: each.name for each in await client.repositories()}


async def _fetch(
    client: Client, session: str | None
) -> tuple[MachineSandbox, list[tuple[Worker, RunSandboxAccess]]]:
    """Return the sandbox of the machine of the server, and what the runs of a named session can do."""
    machine = await client.sandbox()
    if session is None:
        return machine, []
    found = await find_session(client, session)
    runs = [each for each in found.workers if each.type in ("agent", "terminal")]
    return machine, [(each, await client.run_sandbox(found.id, each.id)) for each in runs]
