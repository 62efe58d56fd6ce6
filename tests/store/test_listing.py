"""The list of sessions: newest first, filtered, and read with an index."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, event

from bullpen.domain.records import Repository
from bullpen.store.database import Database
from bullpen.store.listing import SessionFilters, read_page
from bullpen.store.records import RecordStore
from bullpen.store.statements import insert_rows
from bullpen.store.tables import sessions

STATUSES = ("active", "completed", "cancelled", "error")


def row(n: int) -> dict[str, object]:
    title = f"Über die Mühle {n} 100%" if n % 10 == 0 else f"Session_{n}"
    return {
        "id": f"s{n:03}",
        "type": "quick" if n % 2 else "worktree",
        "title": title,
        "title_folded": title.casefold(),
        "status": STATUSES[n % 4],
        "metadata": "{}",
        "live": False,
        "repo_id": f"r{n % 3}" if n % 3 else None,
        "location_path": "/",
        "on_last_disconnect": "keep",
        "created_at": 1000 + n // 2,  # two sessions have the same time, so that the id decides
        "updated_at": 2000,
        "last_seq": 1,
    }


@pytest.fixture
async def records(database: Database) -> RecordStore:
    records = RecordStore(database)
    for name in ("r1", "r2"):
        await records.add_repository(
            Repository(id=name, path=f"/{name}", name=name, created_at=1, updated_at=1)
        )
    await database.write(lambda c: insert_rows(c, sessions, [row(n) for n in range(100)]))
    return records


def expected_ids(keep: Callable[[int], bool] = lambda n: True) -> list[str]:
    return [f"s{n:03}" for n in reversed(range(100)) if keep(n)]


async def test_a_page_has_the_newest_twenty_sessions(records: RecordStore) -> None:
    page = await records.list_sessions()
    assert [each.id for each in page.sessions] == expected_ids()[:20]
    assert page.total == 100


async def test_consecutive_pages_have_no_gap_and_no_repetition(records: RecordStore) -> None:
    pages = [await records.list_sessions(limit=30, offset=offset) for offset in (0, 30, 60, 90, 120)]
    assert [each.id for page in pages for each in page.sessions] == expected_ids()


@pytest.mark.parametrize(
    ("filters", "keep"),
    [
        ({"repo_id": "r1"}, lambda n: n % 3 == 1),
        ({"statuses": ["completed"]}, lambda n: n % 4 == 1),
        ({"statuses": ["completed", "error"]}, lambda n: n % 4 in (1, 3)),
        ({"statuses": []}, lambda n: False),
        ({"type": "quick"}, lambda n: n % 2 == 1),
        ({"q": "session_1"}, lambda n: str(n).startswith("1") and n % 10 > 0),
        ({"q": "MÜHLE"}, lambda n: n % 10 == 0),
        ({"q": "100%"}, lambda n: n % 10 == 0),
        ({"q": "%"}, lambda n: n % 10 == 0),
        ({"q": "_"}, lambda n: n % 10 > 0),
        ({"q": ""}, lambda n: True),
        ({"q": "no such title"}, lambda n: False),
        (
            {"repo_id": "r2", "statuses": ["active", "error"], "type": "quick"},
            lambda n: n % 3 == 2 and n % 4 == 3,
        ),
        ({"repo_id": "missing"}, lambda n: False),
    ],
)
async def test_filters_apply_to_the_list_and_to_the_total(
    records: RecordStore, filters: dict[str, object], keep: Callable[[int], bool]
) -> None:
    page = await records.list_sessions(**filters, limit=100)  # type: ignore[arg-type]
    assert [each.id for each in page.sessions] == expected_ids(keep)
    assert page.total == len(page.sessions)


@pytest.mark.parametrize(
    "filters",
    [
        SessionFilters(),
        SessionFilters(repo_id="r1"),
        SessionFilters(statuses=("active",)),
        SessionFilters(statuses=("active", "completed"), type="quick"),
        SessionFilters(repo_id="r1", statuses=("active", "error"), type="quick"),
        SessionFilters(type="worktree"),
    ],
)
async def test_counting_and_skipping_read_only_the_index(tmp_path: Path, filters: SessionFilters) -> None:
    url = f"sqlite:///{tmp_path}/bullpen.db"
    async with Database.open(url) as database:

        def plans(connection: Connection) -> list[str]:
            statements: list[tuple[str, object]] = []

            @event.listens_for(connection, "before_cursor_execute")
            def record(_c: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
                if not statement.startswith("EXPLAIN"):
                    statements.append((statement, parameters))

            read_page(connection, filters, 20, 0)
            return [
                str(step[3])
                for statement, parameters in statements[1:3]  # the count, and the page of ids inside the rows
                for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)  # type: ignore[arg-type]
            ]

        steps = [step for step in await database.read(plans) if step.startswith(("SCAN", "SEARCH"))]
        assert steps
        assert all("INDEX" in step for step in steps)
        assert not [step for step in steps if step.startswith("SCAN") and "COVERING INDEX" not in step]


async def test_live_sessions_are_found_by_an_index(tmp_path: Path) -> None:
    async with Database.open(f"sqlite:///{tmp_path}/bullpen.db") as database:
        statements: list[str] = []

        @event.listens_for(Engine, "before_cursor_execute")
        def record(_c: object, _cursor: object, statement: str, *_: object) -> None:
            statements.append(statement)

        try:
            await RecordStore(database).live_sessions()
        finally:
            event.remove(Engine, "before_cursor_execute", record)
        (query,) = [each for each in statements if each.startswith("SELECT")]
        plan = await database.read(lambda c: str(c.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}").all()))
    assert "USING INDEX ix_sessions_live" in plan
