"""`bullpen doctor`: whether all is well here, and what to do where it is not."""

import os
from collections.abc import Iterator

from ..config import Config, load
from ..domain.errors import Invalid
from .checkup import database, home, keepers, machine, server
from .checkup.finding import CheckStatus, Finding, fail
from .output import print_json
from .text import paint, printable
from .verb import AsJson, new_app, with_client

app = new_app()

_COLOURS = {CheckStatus.OK: "green", CheckStatus.WARN: "amber", CheckStatus.FAIL: "red"}
_INDENT = " " * 16


@app.command()
def doctor(json: AsJson = False) -> int:
    """Check whether all is well here, and say what to do. Exits with 1 when something fails.

    \b
    Examples:
      bullpen doctor
      bullpen doctor --json | jq -r '.checks[] | select(.verdict != "ok").advice'
    """
    findings = list(examine())
    failed = any(finding.verdict is CheckStatus.FAIL for finding in findings)
    if json:
        print_json({"ok": not failed, "checks": [finding._asdict() for finding in findings]})
    else:
        _print(findings)
    return 1 if failed else 0


def examine() -> Iterator[Finding]:
    """All that can be looked at, the simplest first; without settings little can."""
    yield machine.check_python()
    yield machine.check_git(os.environ)
    try:
        settings = load()
    except Invalid as error:
        yield fail("settings", str(error), "correct that; bullpen config shows all settings")
        return
    elsewhere = os.environ.get("BULLPEN_URL", "")
    found, running = with_client(lambda client: server.check_server(client, elsewhere))
    if elsewhere:
        yield found  # all the rest is there too
    else:
        yield from _examine_house(settings, found, running)
        told = with_client(server.ask_for_agents) if running else None
        yield from machine.check_agents(os.environ, told)


def _examine_house(settings: Config, found: Finding, running: bool) -> Iterator[Finding]:
    yield home.check_directory(settings.home)
    yield machine.check_disk(settings.home)
    yield database.check_database(settings.database_url)
    yield home.check_token(settings, running=running)
    yield found
    yield keepers.check_keeper(settings.home, running=running)
    if not running:
        yield server.check_port(settings)


def _print(findings: list[Finding]) -> None:
    for finding in findings:
        verdict = paint(f"{finding.verdict:<4}", _COLOURS[finding.verdict])
        print(f"{verdict}  {finding.name:<8}  {printable(finding.found)}")
        if finding.advice:
            print(f"{_INDENT}→ {printable(finding.advice)}")
    open_ones = sum(finding.verdict is not CheckStatus.OK for finding in findings)
    things = "one thing" if open_ones == 1 else f"{open_ones} things"
    print(f"\n{things} to look at" if open_ones else "\nall is well")
