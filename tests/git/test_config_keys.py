"""No setting of git makes the server run a program, wherever git would read it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from git.git_callers import GIT_CALLERS, call_git
from support.config_keys import PROGRAMS, SWITCHES, printed_keys, unknown_keys
from support.planted_config import ROUTES, PlantedRepository, Route, call_plain_git

NEWEST_CLASSIFIED = (2, 47)  # a later git may have keys that are planted without being classified


@pytest.fixture
def trap(tmp_path: Path) -> PlantedRepository:
    return PlantedRepository(tmp_path)


def route_name(route: Route) -> str:
    return route.__name__


def test_every_key_of_git_is_classified(
    trap: PlantedRepository, print_figures: Callable[[str], None]
) -> None:
    unknown = unknown_keys()
    counts = f"{len(PROGRAMS)} can run a program, {len(SWITCHES)} can enable one"
    print_figures(
        f"git has {len(printed_keys())} keys; {counts}, {len(unknown)} are not classified: {unknown}"
    )
    version = trap.repo.git("version").split()[2].split(".")
    assert not unknown or tuple(map(int, version[:2])) > NEWEST_CLASSIFIED


@pytest.mark.parametrize("route", ROUTES, ids=route_name)
def test_plain_git_runs_programs_that_are_set_by_this_route(
    trap: PlantedRepository, route: Route, print_figures: Callable[[str], None]
) -> None:
    route(trap)
    trap.clear_traces()
    call_plain_git(trap)
    ran = trap.programs_that_ran()
    print_figures(f"plain git: {len(ran)} programs ran by {route.__name__}")
    assert ran


@pytest.mark.parametrize("route", ROUTES, ids=route_name)
async def test_the_server_runs_no_program_that_is_set_by_this_route(
    trap: PlantedRepository,
    route: Route,
    monkeypatch: pytest.MonkeyPatch,
    print_figures: Callable[[str], None],
) -> None:
    route(trap)
    for name, value in trap.env.items():
        monkeypatch.setenv(name, value)
    trap.clear_traces()
    for name, caller in GIT_CALLERS.items():
        async with asyncio.timeout(60):
            refusal = await call_git(caller, trap)
        assert trap.programs_that_ran() == set(), name
        assert refusal is None, name  # a call that fails early would prove nothing
    ran = f"0 of {len(trap.settings)} settings ran by {route.__name__} in {len(GIT_CALLERS)} functions"
    print_figures(f"git of the server: {ran}")
