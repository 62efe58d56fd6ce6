"""Workers that show files: the diff of a work tree and a document, kept current, told once."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bullpen.domain.commands import AddWorker
from bullpen.domain.errors import Invalid
from bullpen.domain.ids import new_id
from bullpen.domain.states import WorkerState
from bullpen.sessions.session import Session
from support.repositories import Repo
from support.server_without_web import ServerWithoutWeb, until


@pytest.fixture
def repo(house: ServerWithoutWeb) -> Repo:
    return Repo(house.workspace)


async def show(house: ServerWithoutWeb, session: Session, type: str, path: str | None = None) -> str:
    order = AddWorker(worker_id=new_id(), type=type, workspace=str(house.workspace), file_path=path)
    await session.add_worker(order)
    await until(session, lambda s: s.worker(order.worker_id).state is not WorkerState.SPAWNING)
    return order.worker_id


async def told(house: ServerWithoutWeb, session: Session, type: str, **wanted: Any) -> Any:
    """The newest fact of a type, once it says what is wanted."""

    def says_it(fact: Any) -> bool:
        return all(getattr(fact, name) == value for name, value in wanted.items())

    return await newest(house, session, type, says_it)


async def newest(house: ServerWithoutWeb, session: Session, type: str, good: Callable[[Any], bool]) -> Any:
    async with asyncio.timeout(60):
        while True:
            head = session.log.head
            facts = await house.facts(session, type)
            if facts and good(facts[-1]):
                return facts[-1]
            while session.log.head == head:  # nothing came while we read
                await session.log.growth.wait()


async def test_r83_a_diff_follows_files_the_index_and_commits(house: ServerWithoutWeb, repo: Repo) -> None:
    session = await house.session()
    worker = await show(house, session, "diff")
    await told(house, session, "diff_changed", files=[], patch="")
    repo.write("readme.txt", "hello\nworld\n")
    repo.write("new.txt", "one\ntwo\n")
    fact = await told(house, session, "diff_changed", additions=3, deletions=0)
    assert [(f["path"], f["status"], f["staged"], f["unstaged"]) for f in fact.files] == [
        ("new.txt", "untracked", False, True),
        ("readme.txt", "modified", False, True),
    ]
    assert "+world\n" in fact.patch
    assert "+two\n" in fact.patch
    repo.git("add", "new.txt")
    await newest(house, session, "diff_changed", lambda fact: fact.files[0]["staged"])
    repo.commit("all of it")
    await told(house, session, "diff_changed", files=[])
    await session.end_worker(worker, "enough")
    assert session.snapshot.worker(worker).state is WorkerState.TERMINATED


async def test_a_diff_outside_of_any_repository_says_so(house: ServerWithoutWeb) -> None:
    session = await house.session()
    worker = await show(house, session, "diff")
    snapshot = await until(session, lambda s: s.worker(worker).state is WorkerState.FAILED)
    assert "not in a git repository" in str(snapshot.worker(worker).error)


async def test_a_restart_of_the_server_tells_nothing_twice(closed_house: ServerWithoutWeb) -> None:
    async with closed_house.open() as house:
        repo = Repo(house.workspace)
        repo.write("readme.txt", "changed\n")
        session = await house.session()
        worker = await show(house, session, "diff")
        before = await told(house, session, "diff_changed", additions=1)
    async with closed_house.open() as house:
        session = await house.sessions.get(session.id)
        repo.write("more.txt", "x\n")
        await told(house, session, "diff_changed", additions=2)
        facts = await house.facts(session, "diff_changed")
        assert facts[:-1] == [before]
        assert session.snapshot.worker(worker).run == 1
        assert len(await house.facts(session, "worker_ready")) == 1


async def test_a_document_follows_its_file(house: ServerWithoutWeb) -> None:
    session = await house.session()
    file = Path(house.workspace, "notes", "today.md")
    worker = await show(house, session, "markdown", "notes/today.md")
    fact = await told(house, session, "document_changed", text=None)
    assert fact.note == "there is no file notes/today.md"
    file.parent.mkdir()
    file.write_text("# Today\n")
    await told(house, session, "document_changed", text="# Today\n")
    fresh = file.with_suffix(".tmp")
    fresh.write_text("# Tomorrow\n")
    fresh.rename(file)
    await told(house, session, "document_changed", text="# Tomorrow\n")
    file.write_bytes(b"x" * (2 << 20))
    assert (await told(house, session, "document_changed", text=None)).note == "larger than 1 MiB"
    await session.end_worker(worker, "enough")


async def test_a_document_needs_a_path(house: ServerWithoutWeb) -> None:
    session = await house.session()
    with pytest.raises(Invalid, match="filePath"):
        await show(house, session, "markdown")
