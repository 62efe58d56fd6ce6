"""`bullpen doctor`: check this installation, and advise how to fix what is wrong."""

import os
from collections.abc import Iterator

import click

from ..config import Config, load
from ..domain.errors import Invalid
from .checkup import database, home, keepers, machine, server
from .checkup.finding import CheckStatus, Finding, fail
from .output import print_json
from .text import paint, printable
from .verb import json_option, with_client

_COLOURS = {CheckStatus.OK: "green", CheckStatus.WARN: "amber", CheckStatus.FAIL: "red"}
_INDENT = " " * 16


@click.command()
@json_option
def doctor(json: bool) -> int:
    """Check this installation, and say how to fix what is wrong. Exits with 1 when a check fails.

    \b
    Examples:
      bullpen doctor
      bullpen doctor --json | jq -r '.checks[] | select(.verdict != "ok").advice'
    """
    findings = list(run_checks())
    failed = any(finding.verdict is CheckStatus.FAIL for finding in findings)
    if json:
        print_json({"ok": not failed, "checks": [finding._asdict() for finding in findings]})
    else:
        _print(findings)
    return 1 if failed else 0


def run_checks() -> Iterator[Finding]:
    """Yield the findings of all checks; with wrong settings, only of those that need no settings."""
    yield machine.check_python()
    yield machine.check_git(os.environ)
    try:
        settings = load()
    except Invalid as error:
        yield fail("settings", str(error), "correct this setting; bullpen config shows all settings")
        return
    remote_url = os.environ.get("BULLPEN_URL", "")
    found, running = with_client(lambda client: server.check_server(client, remote_url))
    if remote_url:
        yield found  # data directory, database and keepers are on the other machine
    else:
        yield from _check_local_server(settings, found, running)
        answers = running and found.verdict is not CheckStatus.FAIL  # else the request would be repeated
        if answers:
            yield from with_client(server.check_limits)
        agents = with_client(server.fetch_agents) if answers else None
        yield from machine.check_agents(os.environ, agents)


def _check_local_server(settings: Config, found: Finding, running: bool) -> Iterator[Finding]:
    """Yield the findings about the server of this machine; `found` is that of `check_server`."""
    yield home.check_directory(settings.home)
    yield machine.check_sandbox(os.environ)
    yield machine.check_disk(settings.home)
    yield database.check_database(settings.database_url)
    yield home.check_token(settings, running=running)
    yield found
    yield keepers.check_keeper(settings.home, running=running)
    if not running:
        yield server.check_port(settings)


def _print(findings: list[Finding]) -> None:
    """Print the findings with their advice, and count the problems."""
    for finding in findings:
        verdict = paint(f"{finding.verdict:<4}", _COLOURS[finding.verdict])
        print(f"{verdict}  {finding.name:<8}  {printable(finding.found)}")
        if finding.advice:
            print(f"{_INDENT}→ {printable(finding.advice)}")
    count = sum(finding.verdict is not CheckStatus.OK for finding in findings)
    problems = "1 problem" if count == 1 else f"{count} problems"
    print(f"\n{problems} found" if count else "\nno problems found")
