"""Workers that show files: the diff of a work tree and a document. Each change is recorded once."""

import asyncio
import shutil
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
def repo(local_server: ServerWithoutWeb) -> Repo:
    return Repo(local_server.workspace)


async def add_worker(
    local_server: ServerWithoutWeb, session: Session, type: str, path: str | None = None
) -> str:
    order = AddWorker(worker_id=new_id(), type=type, workspace=str(local_server.workspace), file_path=path)
    await session.add_worker(order)
    await until(session, lambda s: s.worker(order.worker_id).state is not WorkerState.SPAWNING)
    return order.worker_id


async def wait_for_fact(local_server: ServerWithoutWeb, session: Session, type: str, **values: Any) -> Any:
    """Wait until the newest fact of a type has these values, and return it."""

    def matches(fact: Any) -> bool:
        return all(getattr(fact, name) == value for name, value in values.items())

    return await wait_for_newest(local_server, session, type, matches)


async def wait_for_newest(
    local_server: ServerWithoutWeb, session: Session, type: str, matches: Callable[[Any], bool]
) -> Any:
    """Wait until the newest fact of a type matches, and return it."""
    async with asyncio.timeout(60):
        while True:
            head = session.log.head
            facts = await local_server.facts(session, type)
            if facts and matches(facts[-1]):
                return facts[-1]
            while session.log.head == head:  # no event was appended during the read
                await session.log.growth.wait()


async def test_a_diff_worker_follows_files_the_index_and_commits(
    local_server: ServerWithoutWeb, repo: Repo
) -> None:
    session = await local_server.session()
    worker = await add_worker(local_server, session, "diff")
    await wait_for_fact(local_server, session, "diff_changed", files=[], patch="")
    repo.write("readme.txt", "hello\nworld\n")
    repo.write("new.txt", "one\ntwo\n")
    fact = await wait_for_fact(local_server, session, "diff_changed", additions=3, deletions=0)
    assert [(f["path"], f["status"], f["staged"], f["unstaged"]) for f in fact.files] == [
        ("new.txt", "untracked", False, True),
        ("readme.txt", "modified", False, True),
    ]
    assert "+world\n" in fact.patch
    assert "+two\n" in fact.patch
    repo.git("add", "new.txt")
    await wait_for_newest(local_server, session, "diff_changed", lambda fact: fact.files[0]["staged"])
    repo.commit("all of it")
    await wait_for_fact(local_server, session, "diff_changed", files=[])
    await session.end_worker(worker, "enough")
    assert session.snapshot.worker(worker).state is WorkerState.TERMINATED


async def test_a_diff_worker_outside_a_repository_fails_with_the_reason(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    worker = await add_worker(local_server, session, "diff")
    snapshot = await until(session, lambda s: s.worker(worker).state is WorkerState.FAILED)
    assert "not in a git repository" in str(snapshot.worker(worker).error)


async def test_a_restart_of_the_server_records_no_change_twice(closed_server: ServerWithoutWeb) -> None:
    async with closed_server.open() as local_server:
        repo = Repo(local_server.workspace)
        repo.write("readme.txt", "changed\n")
        session = await local_server.session()
        worker = await add_worker(local_server, session, "diff")
        before = await wait_for_fact(local_server, session, "diff_changed", additions=1)
    async with closed_server.open() as local_server:
        session = await local_server.sessions.get(session.id)
        repo.write("more.txt", "x\n")
        await wait_for_fact(local_server, session, "diff_changed", additions=2)
        facts = await local_server.facts(session, "diff_changed")
        assert facts[:-1] == [before]
        assert session.snapshot.worker(worker).run == 1
        assert len(await local_server.facts(session, "worker_ready")) == 1


async def test_a_document_worker_follows_its_file(local_server: ServerWithoutWeb) -> None:
    session = await local_server.session()
    file = Path(local_server.workspace, "notes", "today.md")
    worker = await add_worker(local_server, session, "markdown", "notes/today.md")
    fact = await wait_for_fact(local_server, session, "document_changed", text=None)
    assert fact.note == "there is no file notes/today.md"
    file.parent.mkdir()
    file.write_text("# Today\n")
    await wait_for_fact(local_server, session, "document_changed", text="# Today\n")
    fresh = file.with_suffix(".tmp")
    fresh.write_text("# Tomorrow\n")
    fresh.rename(file)
    await wait_for_fact(local_server, session, "document_changed", text="# Tomorrow\n")
    file.write_bytes(b"x" * (2 << 20))
    assert (
        await wait_for_fact(local_server, session, "document_changed", text=None)
    ).note == "larger than 1 MiB"
    await session.end_worker(worker, "enough")


async def test_a_document_worker_does_not_watch_a_directory_outside_the_workspace(
    local_server: ServerWithoutWeb, tmp_path: Path
) -> None:
    session = await local_server.session()
    outside, notes = tmp_path / "outside", Path(local_server.workspace, "notes")
    outside.mkdir()
    notes.symlink_to(outside)
    await add_worker(local_server, session, "markdown", "notes/today.md")
    fact = await wait_for_fact(local_server, session, "document_changed", text=None)
    assert fact.note == "notes/today.md is outside the workspace"
    notes.unlink()
    notes.mkdir()
    (notes / "today.md").write_text("# Today\n")
    await wait_for_fact(local_server, session, "document_changed", text="# Today\n")


async def test_a_document_worker_continues_after_its_directory_was_replaced(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    notes = Path(local_server.workspace, "notes")
    for text in ("# One\n", "# Two\n", "# Three\n"):
        notes.mkdir()
        (notes / "today.md").write_text(text)
        if text == "# One\n":
            await add_worker(local_server, session, "markdown", "notes/today.md")
        await wait_for_fact(local_server, session, "document_changed", text=text)
        shutil.rmtree(notes)
        await wait_for_fact(local_server, session, "document_changed", text=None)


async def test_a_document_worker_without_a_path_is_refused(local_server: ServerWithoutWeb) -> None:
    session = await local_server.session()
    with pytest.raises(Invalid, match="filePath"):
        await add_worker(local_server, session, "markdown")
