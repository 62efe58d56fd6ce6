"""Recovery after a server was killed while it created, removed or restored a worktree."""

import asyncio
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from structlog.testing import capture_logs

from bullpen.domain.errors import Forbidden, RemoteFault
from bullpen.git import worktrees as git
from bullpen.git.git_directories import GitDirectories
from bullpen.git.marked import kill_marked, marker_variables
from bullpen.sandbox.protected import ProtectedPlaces
from bullpen.sessions.pending_worktrees import PendingWorktree, PendingWorktrees
from bullpen.sessions.trash import TrashedWorktree, WorktreeTrash
from bullpen.sessions.worktree_making import make_worktree
from bullpen.sessions.worktree_upkeep import recover
from support.capabilities import without_file_capabilities
from support.registered_repository import directory_contents
from support.repositories import Repo


class WorktreeFixture:
    """A repository, its pending worktrees and the trash, without a server."""

    def __init__(self, directory: Path, home: Path) -> None:
        self.repo = Repo(directory / "repo")
        self.path = directory / "repo.worktrees" / "topic"
        self.pending = PendingWorktrees(home / "worktrees")
        self.trash = WorktreeTrash(home / "trash")
        self.trash_directory = home / "trash"
        self.git_directory = self.repo.git_dir / "worktrees" / "topic"
        self.protected = ProtectedPlaces([home], [])

    def pending_worktree(self, **more: object) -> PendingWorktree:
        values = {
            "id": "the-pending-worktree",
            "repo_id": "r",
            "key": "k",
            "name": "topic",
            "path": str(self.path),
            "branch": "topic",
            "start": self.repo.git("rev-parse", "HEAD").strip(),
            "begun_at": 1 << 60,
        }
        return PendingWorktree(**(values | more))  # type: ignore[arg-type]

    async def create(self) -> None:
        async def write_untracked_file(path: Path) -> list[str]:
            (path / "untracked").write_text("precious")
            return []

        await make_worktree(
            self.repo.git_directories,
            self.pending_worktree(),
            self.pending,
            write_untracked_file,
            lambda _: None,
        )

    async def remove(self) -> TrashedWorktree:
        return await self.trash.move_in("r", await git.find_worktree(self.repo.git_directories, "topic"))

    async def recover(self) -> None:
        async def find(_: str) -> GitDirectories:
            return self.repo.git_directories

        await recover(self.pending, self.trash, find, self.require_movable)

    def require_movable(self, path: Path) -> None:
        if self.protected.overlaps(Path(os.path.realpath(path))):
            raise Forbidden(str(path))

    def is_untouched(self) -> bool:
        """Return whether the worktree has left no branch and no directory."""
        refs = self.repo.git("for-each-ref")
        return "topic" not in refs and not self.path.parent.exists() and not self.git_directory.exists()


@pytest.fixture
def worktree(tmp_path: Path) -> WorktreeFixture:
    return WorktreeFixture(tmp_path, tmp_path / "home")


@pytest.fixture
def two_disks(tmp_path: Path) -> Iterator[WorktreeFixture]:
    """Put the server's home on another disk than the repository."""
    with TemporaryDirectory(dir="/dev/shm") as home:
        assert os.stat(home).st_dev != os.stat(tmp_path).st_dev
        yield WorktreeFixture(tmp_path, Path(home))


# The server was killed while it created a worktree


def leave_only_the_record(worktree: WorktreeFixture) -> None:
    pass


def leave_a_branch(worktree: WorktreeFixture) -> None:
    worktree.repo.git("branch", "topic")


def leave_a_branch_and_a_directory(worktree: WorktreeFixture) -> None:
    leave_a_branch(worktree)
    worktree.path.mkdir(parents=True)


def leave_a_git_directory_without_its_pointer(worktree: WorktreeFixture) -> None:
    leave_a_branch_and_a_directory(worktree)
    worktree.git_directory.mkdir(parents=True)
    (worktree.git_directory / "locked").write_text("initializing")


def leave_a_worktree_without_its_head(worktree: WorktreeFixture) -> None:
    leave_a_checkout(worktree)
    (worktree.git_directory / "HEAD").unlink()


def leave_a_checkout(worktree: WorktreeFixture) -> None:
    worktree.repo.git("worktree", "add", "-q", "-b", "topic", str(worktree.path))


LEFTOVERS = [
    leave_only_the_record,
    leave_a_branch,
    leave_a_branch_and_a_directory,
    leave_a_git_directory_without_its_pointer,
    leave_a_worktree_without_its_head,
    leave_a_checkout,
]


@pytest.mark.parametrize("leave", LEFTOVERS, ids=lambda each: each.__name__)
async def test_a_partly_created_worktree_is_undone_and_can_be_created_again(
    worktree: WorktreeFixture, leave: Callable[[WorktreeFixture], None]
) -> None:
    worktree.pending.save(worktree.pending_worktree())
    leave(worktree)
    await worktree.recover()
    assert worktree.is_untouched()
    assert worktree.pending.list() == []
    await worktree.create()
    assert (worktree.path / "readme.txt").exists()


async def test_a_partly_created_worktree_that_leads_into_the_data_directory_is_kept(
    worktree: WorktreeFixture,
) -> None:
    worktree.pending.save(worktree.pending_worktree(done=False))
    leave_a_checkout(worktree)
    shutil.rmtree(worktree.path.parent)
    worktree.path.parent.symlink_to(worktree.trash_directory.parent)
    record = worktree.trash_directory.parent / "topic" / "precious"
    record.parent.mkdir()
    record.write_text("data of Bullpen")
    (worktree.git_directory / "gitdir").write_text(f"{worktree.path}/.git\n")
    await worktree.recover()
    assert record.read_text() == "data of Bullpen"


async def test_a_directory_and_a_branch_that_a_user_made_meanwhile_are_kept(
    worktree: WorktreeFixture,
) -> None:
    worktree.pending.save(worktree.pending_worktree())
    worktree.path.mkdir(parents=True)
    (worktree.path / "file").write_text("precious")
    worktree.repo.git("branch", "topic")
    worktree.repo.git("checkout", "-q", "topic")
    moved = worktree.repo.commit("work of a user")
    await worktree.recover()
    assert (worktree.path / "file").read_text() == "precious"
    assert worktree.repo.git("rev-parse", "topic").strip() == moved


async def test_a_partly_created_worktree_with_a_commit_of_a_user_is_kept(worktree: WorktreeFixture) -> None:
    worktree.pending.save(worktree.pending_worktree())
    leave_a_checkout(worktree)
    (worktree.path / "file").write_text("precious")
    commit = worktree.repo.commit("work of a user", cwd=worktree.path)
    (worktree.path / "file").write_text("and more")
    await worktree.recover()
    assert (worktree.path / "file").read_text() == "and more"
    assert worktree.repo.git("rev-parse", "topic").strip() == commit
    assert worktree.pending.list() == []


async def test_a_completely_created_worktree_is_kept_for_the_repeated_request(
    worktree: WorktreeFixture,
) -> None:
    await worktree.create()
    await worktree.recover()
    assert (worktree.path / "untracked").read_text() == "precious"
    found = worktree.pending.find_finished("r", "k")
    assert found is not None
    assert found.path == str(worktree.path)
    worktree.pending.save(worktree.pending_worktree(done=True, begun_at=0))
    await worktree.recover()
    assert worktree.pending.find_finished("r", "k") is None
    assert worktree.path.exists()


async def test_processes_that_a_killed_server_left_are_ended_by_their_marker() -> None:
    child = subprocess.Popen(["sleep", "1000"], env=os.environ | marker_variables("a-worktree"))
    other = subprocess.Popen(["sleep", "1000"], env=os.environ | marker_variables("another"))
    try:
        ending = asyncio.create_task(kill_marked("a-worktree"))
        await asyncio.to_thread(child.wait, 30)
        await ending
        assert other.poll() is None
    finally:
        for each in (child, other):
            each.kill()
            each.wait()


# The server was killed while it removed or restored a worktree


async def remove_worktree(
    worktree: WorktreeFixture,
) -> tuple[TrashedWorktree, Path, dict[str, tuple[int, int, bytes]]]:
    await worktree.create()
    before = directory_contents(worktree.path)
    trashed = await worktree.remove()
    return trashed, worktree.trash_directory / trashed.id, before


async def check_in_place(worktree: WorktreeFixture, before: object) -> None:
    """Check that the worktree is at its path and that the trash is empty."""
    assert directory_contents(worktree.path) == before
    assert (await git.find_worktree(worktree.repo.git_directories, "topic")).branch == "topic"
    assert worktree.trash.list() == []
    assert list(worktree.trash_directory.iterdir()) == []
    assert "refs/bullpen" not in worktree.repo.git("for-each-ref")


async def check_trashed(worktree: WorktreeFixture, before: object) -> None:
    """Check that the worktree is in the trash and can be restored."""
    assert not worktree.path.exists()
    assert not worktree.git_directory.exists()
    (trashed,) = worktree.trash.list()
    await worktree.trash.restore(worktree.repo.git_directories, trashed)
    await check_in_place(worktree, before)


async def test_a_removal_that_only_wrote_its_record_is_undone(worktree: WorktreeFixture) -> None:
    _, entry, before = await remove_worktree(worktree)
    (entry / "tree").rename(worktree.path)
    (entry / "admin").rename(worktree.git_directory)
    await worktree.recover()
    await check_in_place(worktree, before)


async def test_a_removal_between_its_two_moves_is_finished(worktree: WorktreeFixture) -> None:
    _, entry, before = await remove_worktree(worktree)
    (entry / "admin").rename(worktree.git_directory)
    await worktree.recover()
    await check_trashed(worktree, before)


async def test_a_removal_to_another_disk_is_undone_before_the_original_was_moved_aside(
    two_disks: WorktreeFixture,
) -> None:
    worktree = two_disks
    trashed, entry, _ = await remove_worktree(worktree)
    shutil.move(entry / "admin", worktree.git_directory)
    shutil.copytree(entry / "tree", worktree.path, symlinks=True)
    (worktree.path / "more").write_text("written during the copy")
    before = directory_contents(worktree.path)
    (entry / f".tree.{trashed.id}.partial").mkdir()
    await worktree.recover()
    await check_in_place(worktree, before)


async def test_a_removal_to_another_disk_is_finished_while_the_original_is_partly_deleted(
    two_disks: WorktreeFixture,
) -> None:
    worktree = two_disks
    trashed, entry, before = await remove_worktree(worktree)
    shutil.copytree(entry / "admin", worktree.git_directory)
    leftover = worktree.path.with_name(f".topic.{trashed.id}.moved")
    leftover.mkdir(parents=True)
    (leftover / "file").write_text("not deleted yet")
    await worktree.recover()
    assert not leftover.exists()
    await check_trashed(worktree, before)


async def test_a_restore_from_another_disk_is_finished_after_the_tree_was_copied(
    two_disks: WorktreeFixture,
) -> None:
    worktree = two_disks
    _, entry, before = await remove_worktree(worktree)
    subprocess.run(["cp", "-a", "-T", entry / "tree", worktree.path], check=True)
    await worktree.recover()
    await check_in_place(worktree, before)


async def test_a_restore_between_its_two_moves_is_finished(worktree: WorktreeFixture) -> None:
    _, entry, before = await remove_worktree(worktree)
    (entry / "tree").rename(worktree.path)
    await worktree.recover()
    await check_in_place(worktree, before)


async def test_a_restore_of_which_only_the_record_is_left_is_complete(worktree: WorktreeFixture) -> None:
    _, entry, before = await remove_worktree(worktree)
    (entry / "tree").rename(worktree.path)
    (entry / "admin").rename(worktree.git_directory)
    shutil.rmtree(entry / "tree", ignore_errors=True)
    await worktree.recover()
    await check_in_place(worktree, before)


async def test_a_worktree_created_with_the_name_of_a_removed_one_damages_neither(
    worktree: WorktreeFixture,
) -> None:
    trashed, entry, _ = await remove_worktree(worktree)
    worktree.repo.git("worktree", "add", "-q", str(worktree.path), "topic")
    (worktree.path / "new").write_text("of another worktree")
    await worktree.recover()
    assert worktree.trash.list() == [trashed]
    assert (entry / "tree" / "untracked").read_text() == "precious"
    assert (entry / "admin" / "HEAD").exists()
    assert (worktree.path / "new").read_text() == "of another worktree"
    assert (await git.find_worktree(worktree.repo.git_directories, "topic")).branch == "topic"


@pytest.mark.parametrize("disks", ["worktree", "two_disks"])
async def test_a_worktree_created_between_the_two_moves_of_a_removal_damages_neither(
    disks: str, request: pytest.FixtureRequest
) -> None:
    worktree: WorktreeFixture = request.getfixturevalue(disks)
    trashed, entry, _ = await remove_worktree(worktree)
    shutil.move(entry / "admin", worktree.git_directory)
    if disks == "two_disks":
        worktree.path.with_name(f".topic.{trashed.id}.moved").mkdir()
    worktree.repo.git("worktree", "add", "-q", "--force", str(worktree.path), "topic")
    (worktree.path / "new").write_text("of another worktree")
    for _ in range(2):
        await worktree.recover()
    assert worktree.trash.list() == [trashed]
    assert (entry / "tree" / "untracked").read_text() == "precious"
    assert (worktree.path / "new").read_text() == "of another worktree"


# Obstacles to a removal


def make_read_only_cache(top: Path) -> Path:
    """Create read-only directories, as some tools do for their caches."""
    cache = top / "cache" / "module"
    cache.mkdir(parents=True)
    (cache / "source").write_text("precious")
    for directory in (cache, cache.parent):
        directory.chmod(0o555)
    return cache


@pytest.mark.parametrize("disks", ["worktree", "two_disks"])
async def test_read_only_directories_are_removed_restored_and_deleted(
    disks: str, request: pytest.FixtureRequest
) -> None:
    worktree: WorktreeFixture = request.getfixturevalue(disks)
    await worktree.create()
    make_read_only_cache(worktree.path)
    before = directory_contents(worktree.path)
    with without_file_capabilities():
        await worktree.remove()
        assert list(worktree.path.parent.iterdir()) == []
        await check_trashed(worktree, before)
        await worktree.trash.delete(await worktree.remove(), worktree.repo.git_directories)
    assert list(worktree.trash_directory.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the owner of a file needs root")
async def test_leftovers_that_cannot_be_deleted_are_logged_and_the_copy_is_complete(
    two_disks: WorktreeFixture,
) -> None:
    """A container that runs as root leaves files of another owner."""
    worktree = two_disks
    await worktree.create()
    foreign = worktree.path / "foreign"
    foreign.mkdir()
    (foreign / "file").write_text("precious")
    os.chown(foreign, 65534, 65534)
    before = directory_contents(worktree.path)
    with without_file_capabilities(), capture_logs() as log_entries:
        trashed = await worktree.remove()
    leftover = worktree.path.with_name(f".topic.{trashed.id}.moved")
    assert [(each["event"], each["path"]) for each in log_entries] == [
        ("leftovers of a worktree could not be deleted", str(leftover))
    ]
    assert directory_contents(worktree.trash_directory / trashed.id / "tree") == before
    os.chown(leftover / "foreign", 0, 0)
    await worktree.recover()
    assert not leftover.exists()
    assert worktree.trash.list() == [trashed]


@pytest.mark.parametrize("disks", ["worktree", "two_disks"])
async def test_a_removal_that_can_neither_be_finished_nor_undone_keeps_every_file(
    disks: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    worktree: WorktreeFixture = request.getfixturevalue(disks)
    await worktree.create()
    before = directory_contents(worktree.path)
    rename = os.rename

    def rename_and_make_again(source: Path, target: Path) -> None:
        rename(source, target)
        if source == worktree.path:
            worktree.path.mkdir()
            (worktree.path / "file").write_text("of another worktree")

    monkeypatch.setattr(os, "rename", rename_and_make_again)
    worktree.git_directory.parent.chmod(0o555)
    with without_file_capabilities(), pytest.raises(RemoteFault, match="cannot be moved"):
        await worktree.remove()
    monkeypatch.undo()
    worktree.git_directory.parent.chmod(0o755)
    (trashed,) = worktree.trash.list()
    assert directory_contents(worktree.trash_directory / trashed.id / "tree") == before
    assert (worktree.path / "file").read_text() == "of another worktree"
    await worktree.recover()
    assert (worktree.path / "file").read_text() == "of another worktree"
    shutil.rmtree(worktree.path)
    await check_trashed(worktree, before)


async def test_a_removal_whose_request_is_cancelled_loses_no_file(
    two_disks: WorktreeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    worktree = two_disks
    await worktree.create()
    before = directory_contents(worktree.path)
    deleting, continue_deleting, rmtree = threading.Event(), threading.Event(), shutil.rmtree

    def slow_rmtree(path: Path) -> None:
        deleting.set()
        continue_deleting.wait(30)
        rmtree(path)

    monkeypatch.setattr(shutil, "rmtree", slow_rmtree)
    removal = asyncio.ensure_future(worktree.remove())
    await asyncio.to_thread(deleting.wait, 30)
    removal.cancel()
    await asyncio.wait([removal])
    continue_deleting.set()
    monkeypatch.undo()
    assert removal.cancelled()
    await worktree.recover()
    await check_trashed(worktree, before)


async def test_directories_that_resemble_leftovers_are_kept(worktree: WorktreeFixture) -> None:
    await remove_worktree(worktree)
    similar = [worktree.path.with_name(name) for name in ("topic.partial", ".topic.moved")]
    for each in similar:
        each.mkdir()
    await worktree.recover()
    assert all(each.exists() for each in similar)


async def test_a_trash_entry_without_its_record_is_deleted(worktree: WorktreeFixture) -> None:
    trashed, _, _ = await remove_worktree(worktree)
    (worktree.trash_directory / "incomplete").mkdir()
    (worktree.trash_directory / "incomplete" / ".record.json.0123").write_text("{")
    await worktree.recover()
    assert [path.name for path in worktree.trash_directory.iterdir()] == [trashed.id]


async def test_a_complete_trash_entry_is_kept_whatever_is_at_its_original_path(
    worktree: WorktreeFixture,
) -> None:
    trashed, entry, _ = await remove_worktree(worktree)
    worktree.path.mkdir()
    (worktree.path / "file").write_text("of another worktree")
    await worktree.recover()
    assert worktree.trash.list() == [trashed]
    assert (entry / "tree" / "untracked").exists()
    assert (worktree.path / "file").read_text() == "of another worktree"
