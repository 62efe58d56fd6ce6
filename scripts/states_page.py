"""Prints docs/states.md from the tables in domain/states.py: scripts/states_page.py > docs/states.md"""

import sys
from collections.abc import Iterable, Sequence

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

Three axes, never mixed: the status of a session, the state of a worker's life, and the activity of a
living worker. A row is where one is, a column is what happens. An event without a cell is refused and
nothing has changed.
"""

LIFE = "A run begins with `worker_spawning`; the first one makes the worker, a later one starts it again."

ACTIVITY = """A living worker is any of {words}; every step of its life
sets it back to `unknown`. Any may follow any other: activity is what was observed, recorded by
`worker_activity` with the reason in `why`."""

WORDS = "Each interface says these states in its own words."


def main() -> None:
    sys.stdout.write(page())


def page() -> str:
    return "\n".join(
        [
            HEAD,
            "## A session",
            "",
            *_table(["status", "session_end"], _session_rows()),
            "",
            "## A worker's life",
            "",
            LIFE,
            "",
            *_table(["state", *(fact.type for fact in _steps())], _worker_rows()),
            "",
            "## A worker's activity",
            "",
            ACTIVITY.format(words=_names(Activity)),
            "",
            "## The words of each interface",
            "",
            WORDS,
            "",
            *_table(["state", "activity", "agent panel", "relay"], _word_rows()),
            "",
            "Without a worker the agent panel says `" + panel_status(None, Activity.UNKNOWN) + "`.",
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
        after = [end for ends in steps.values() for end in SessionStatus if end in ends]
        yield [status.value, " · ".join(after)]


def _worker_rows() -> Iterable[list[str]]:
    for state, steps in WORKER.items():
        yield [state.value, *(steps[fact].value if fact in steps else "" for fact in _steps())]


def _word_rows() -> Iterable[list[str]]:
    for state in WorkerState:
        by_word: dict[str, list[str]] = {}
        for activity in Activity:
            by_word.setdefault(panel_status(state, activity), []).append(activity.value)
        for word, activities in by_word.items():
            shown = "any" if len(by_word) == 1 else " · ".join(activities)
            yield [state.value, shown, word, relay_agent_state(state)]


def _steps() -> list[type[Fact]]:
    """The columns: every fact some state takes, in the order they are first met."""
    return list(dict.fromkeys(fact for steps in WORKER.values() for fact in steps))


def _names(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


if __name__ == "__main__":
    main()
