"""Print docs/states.md from the tables in domain/states.py: scripts/states_page.py > docs/states.md"""

import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from bullpen.domain.events import Fact
from bullpen.domain.states import (
    SESSION,
    WORKER,
    Activity,
    SessionStatus,
    WorkerState,
    panel_status,
    relay_agent_state,
    relay_session_state,
)

HEAD = """# States

Generated from `src/bullpen/domain/states.py` by `scripts/states_page.py`; do not edit.

A session has a status, a worker has a state, and a running worker has an activity: three separate values.
In the first two tables, a row is the current status or state, a column is an event, and the cell is the
status or state after the event. An event with an empty cell is refused and changes nothing.
"""

RUNS = "Each run begins with `worker_spawning`: the first one creates the worker, a later one restarts it."

ACTIVITY = """The activity of a running worker is one of {activities}. Every change of its
state sets the activity to `unknown`. Each activity may follow any other: `worker_activity` records what was
observed, with the reason in `why`."""

NAMES = "The agent panel and the relay have their own names for these states."


def main() -> None:
    sys.stdout.write(page())


def page() -> str:
    return "\n".join(
        [
            HEAD,
            "## Status of a session",
            "",
            *_table(["status", *(fact.type for fact in _steps(SESSION))], _session_rows()),
            "",
            "## State of a worker",
            "",
            RUNS,
            "",
            *_table(["state", *(fact.type for fact in _steps(WORKER))], _worker_rows()),
            "",
            "## Activity of a worker",
            "",
            ACTIVITY.format(activities=_quoted(Activity)),
            "",
            "## Names in each interface",
            "",
            NAMES,
            "",
            *_table(["state", "activity", "agent panel", "relay"], _name_rows()),
            "",
            "Without a worker, the agent panel shows `" + panel_status(None, Activity.UNKNOWN) + "`.",
            "",
            *_table(
                ["session", "relay"],
                ([status.value, relay_session_state(status)] for status in SessionStatus),
            ),
            "",
        ]
    )


def _session_rows() -> Iterable[list[str]]:
    for status, steps in SESSION.items():
        yield [status.value, *(_joined(steps.get(fact, ())) for fact in _steps(SESSION))]


def _worker_rows() -> Iterable[list[str]]:
    for state, steps in WORKER.items():
        yield [state.value, *(steps[fact].value if fact in steps else "" for fact in _steps(WORKER))]


def _name_rows() -> Iterable[list[str]]:
    for state in WorkerState:
        by_name: dict[str, list[str]] = {}
        for activity in Activity:
            by_name.setdefault(panel_status(state, activity), []).append(activity.value)
        for name, activities in by_name.items():
            shown = "any" if len(by_name) == 1 else " · ".join(activities)
            yield [state.value, shown, name, relay_agent_state(state)]


def _joined(statuses: Container[SessionStatus]) -> str:
    return " · ".join(status for status in SessionStatus if status in statuses)


def _steps(table: Mapping[Any, Mapping[type[Fact], object]]) -> list[type[Fact]]:
    """Return the columns: every fact that some state accepts, in the order of the table."""
    return list(dict.fromkeys(fact for steps in table.values() for fact in steps))


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


if __name__ == "__main__":
    main()
