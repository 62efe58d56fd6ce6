"""What a server killed while it makes, removes or restores a worktree leaves, and what becomes of it."""

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

from bullpen.domain.errors import RemoteFault
from bullpen.git import worktrees as git
from bullpen.git.places import GitDirectories
from bullpen.git.process import kill_marked, marker_variables
from bullpen.sessions.pending_worktrees import PendingWorktree, PendingWorktrees
from bullpen.sessions.trash import TrashedWorktree, WorktreeTrash
from bullpen.sessions.worktree_making import make_worktree
from bullpen.sessions.worktree_upkeep import recover
from support.capabilities import without_file_capabilities
from support.registered_repository import directory_contents
from support.repositories import Repo


class Yard:
    """A repository, our notes and our trash, without a server."""

    def __init__(self, directory: Path, home: Path) -> None:
        self.repo = Repo(directory / "repo")
        self.path = directory / "repo.worktrees" / "topic"
        self.errands = PendingWorktrees(home / "worktrees")
        self.trash = WorktreeTrash(home / "trash")
        self.boxes = home / "trash"
        self.admin = self.repo.git_dir / "worktrees" / "topic"

    def errand(self, **more: object) -> PendingWorktree:
        values = {
            "id": "the-errand",
            "repo_id": "r",
            "key": "k",
            "name": "topic",
            "path": str(self.path),
            "branch": "topic",
            "start": self.repo.git("rev-parse", "HEAD").strip(),
            "begun_at": 1 << 60,
        }
        return PendingWorktree(**(values | more))  # type: ignore[arg-type]

    async def make(self) -> None:
        async def furnish(path: Path) -> list[str]:
            (path / "untracked").write_text("precious")
            return []

        await make_worktree(self.repo.git_directories, self.errand(), self.errands, furnish, lambda _: None)

    async def remove(self) -> TrashedWorktree:
        return await self.trash.move_in("r", await git.find_worktree(self.repo.git_directories, "topic"))

    async def mend(self) -> None:
        async def find(_: str) -> GitDirectories:
            return self.repo.git_directories

        await recover(self.errands, self.trash, find)

    def untouched(self) -> bool:
        """As if nobody had ever asked for the worktree."""
        branches = self.repo.git("for-each-ref")
        return "topic" not in branches and not self.path.parent.exists() and not self.admin.exists()


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path, tmp_path / "home")


@pytest.fixture
def two_disks(tmp_path: Path) -> Iterator[Yard]:
    """With our own directory on another disk."""
    with TemporaryDirectory(dir="/dev/shm") as home:
        assert os.stat(home).st_dev != os.stat(tmp_path).st_dev
        yield Yard(tmp_path, Path(home))


# Killed while making


def only_the_note(yard: Yard) -> None:
    pass


def the_branch(yard: Yard) -> None:
    yard.repo.git("branch", "topic")


def the_branch_and_a_directory(yard: Yard) -> None:
    the_branch(yard)
    yard.path.mkdir(parents=True)


def a_directory_of_git_without_its_pointer(yard: Yard) -> None:
    the_branch_and_a_directory(yard)
    yard.admin.mkdir(parents=True)
    (yard.admin / "locked").write_text("initializing")


def a_worktree_without_its_head(yard: Yard) -> None:
    a_checkout(yard)
    (yard.admin / "HEAD").unlink()


def a_checkout(yard: Yard) -> None:
    yard.repo.git("worktree", "add", "-q", "-b", "topic", str(yard.path))


MAKING = [
    only_the_note,
    the_branch,
    the_branch_and_a_directory,
    a_directory_of_git_without_its_pointer,
    a_worktree_without_its_head,
    a_checkout,
]


@pytest.mark.parametrize("left", MAKING, ids=lambda each: each.__name__)
async def test_what_is_half_made_is_taken_back_and_can_be_made(
    yard: Yard, left: Callable[[Yard], None]
) -> None:
    yard.errands.save(yard.errand())
    left(yard)
    await yard.mend()
    assert yard.untouched()
    assert yard.errands.list() == []
    await yard.make()
    assert (yard.path / "readme.txt").exists()


async def test_what_somebody_put_in_the_way_meanwhile_stays(yard: Yard) -> None:
    yard.errands.save(yard.errand())
    yard.path.mkdir(parents=True)
    (yard.path / "file").write_text("precious")
    yard.repo.git("branch", "topic")
    yard.repo.git("checkout", "-q", "topic")
    moved = yard.repo.commit("somebody's work")
    await yard.mend()
    assert (yard.path / "file").read_text() == "precious"
    assert yard.repo.git("rev-parse", "topic").strip() == moved


async def test_a_half_made_worktree_somebody_committed_in_stays(yard: Yard) -> None:
    yard.errands.save(yard.errand())
    a_checkout(yard)
    (yard.path / "file").write_text("precious")
    made = yard.repo.commit("somebody's work", cwd=yard.path)
    (yard.path / "file").write_text("and more")
    await yard.mend()
    assert (yard.path / "file").read_text() == "and more"
    assert yard.repo.git("rev-parse", "topic").strip() == made
    assert yard.errands.list() == []


async def test_what_is_whole_is_kept_for_the_request_that_comes_again(yard: Yard) -> None:
    await yard.make()
    await yard.mend()
    assert (yard.path / "untracked").read_text() == "precious"
    found = yard.errands.find_finished("r", "k")
    assert found is not None
    assert found.path == str(yard.path)
    yard.errands.save(yard.errand(done=True, begun_at=0))
    await yard.mend()
    assert yard.errands.find_finished("r", "k") is None
    assert yard.path.exists()


async def test_what_a_killed_server_left_running_is_ended_first() -> None:
    child = subprocess.Popen(["sleep", "1000"], env=os.environ | marker_variables("an-errand"))
    other = subprocess.Popen(["sleep", "1000"], env=os.environ | marker_variables("another"))
    try:
        ending = asyncio.create_task(kill_marked("an-errand"))
        await asyncio.to_thread(child.wait, 30)
        await ending
        assert other.poll() is None
    finally:
        for each in (child, other):
            each.kill()
            each.wait()


# Killed while removing or restoring


async def removed(yard: Yard) -> tuple[TrashedWorktree, Path, dict[str, tuple[int, int, bytes]]]:
    await yard.make()
    before = directory_contents(yard.path)
    trashed = await yard.remove()
    return trashed, yard.boxes / trashed.id, before


async def check_there(yard: Yard, before: object) -> None:
    """Where it was, with nothing of it in the trash."""
    assert directory_contents(yard.path) == before
    assert (await git.find_worktree(yard.repo.git_directories, "topic")).branch == "topic"
    assert yard.trash.list() == []
    assert list(yard.boxes.iterdir()) == []
    assert "refs/bullpen" not in yard.repo.git("for-each-ref")


async def check_trashed(yard: Yard, before: object) -> None:
    """In the trash, from where it can be restored."""
    assert not yard.path.exists()
    assert not yard.admin.exists()
    (trashed,) = yard.trash.list()
    await yard.trash.restore(yard.repo.git_directories, trashed)
    await check_there(yard, before)


async def test_a_removal_of_which_only_the_record_is_there_never_was(yard: Yard) -> None:
    _, box, before = await removed(yard)
    (box / "tree").rename(yard.path)
    (box / "admin").rename(yard.admin)
    await yard.mend()
    await check_there(yard, before)


async def test_a_removal_between_its_two_moves_is_finished(yard: Yard) -> None:
    _, box, before = await removed(yard)
    (box / "admin").rename(yard.admin)
    await yard.mend()
    await check_trashed(yard, before)


async def test_a_removal_to_another_disk_that_was_not_put_aside_never_was(two_disks: Yard) -> None:
    yard = two_disks
    trashed, box, _ = await removed(yard)
    shutil.move(box / "admin", yard.admin)
    shutil.copytree(box / "tree", yard.path, symlinks=True)
    (yard.path / "more").write_text("somebody went on")
    before = directory_contents(yard.path)
    (box / f".tree.{trashed.id}.partial").mkdir()
    await yard.mend()
    await check_there(yard, before)


async def test_a_removal_to_another_disk_is_finished_when_the_rest_is_half_deleted(two_disks: Yard) -> None:
    yard = two_disks
    trashed, box, before = await removed(yard)
    shutil.copytree(box / "admin", yard.admin)
    rest = yard.path.with_name(f".topic.{trashed.id}.moved")
    rest.mkdir(parents=True)
    (rest / "file").write_text("the last of it")
    await yard.mend()
    assert not rest.exists()
    await check_trashed(yard, before)


async def test_a_restore_from_another_disk_that_has_copied_the_tree_is_finished(two_disks: Yard) -> None:
    yard = two_disks
    _, box, before = await removed(yard)
    subprocess.run(["cp", "-a", "-T", box / "tree", yard.path], check=True)
    await yard.mend()
    await check_there(yard, before)


async def test_a_restore_between_its_two_moves_is_finished(yard: Yard) -> None:
    _, box, before = await removed(yard)
    (box / "tree").rename(yard.path)
    await yard.mend()
    await check_there(yard, before)


async def test_a_restore_of_which_only_the_record_is_left_is_done(yard: Yard) -> None:
    _, box, before = await removed(yard)
    (box / "tree").rename(yard.path)
    (box / "admin").rename(yard.admin)
    shutil.rmtree(box / "tree", ignore_errors=True)
    await yard.mend()
    await check_there(yard, before)


async def test_what_was_made_anew_under_the_name_of_a_removed_one_costs_neither(yard: Yard) -> None:
    trashed, box, _ = await removed(yard)
    yard.repo.git("worktree", "add", "-q", str(yard.path), "topic")
    (yard.path / "new").write_text("another's")
    await yard.mend()
    assert yard.trash.list() == [trashed]
    assert (box / "tree" / "untracked").read_text() == "precious"
    assert (box / "admin" / "HEAD").exists()
    assert (yard.path / "new").read_text() == "another's"
    assert (await git.find_worktree(yard.repo.git_directories, "topic")).branch == "topic"


@pytest.mark.parametrize("disks", ["yard", "two_disks"])
async def test_what_was_made_anew_after_the_first_move_of_a_removal_costs_neither(
    disks: str, request: pytest.FixtureRequest
) -> None:
    yard: Yard = request.getfixturevalue(disks)
    trashed, box, _ = await removed(yard)
    shutil.move(box / "admin", yard.admin)
    if disks == "two_disks":
        yard.path.with_name(f".topic.{trashed.id}.moved").mkdir()
    yard.repo.git("worktree", "add", "-q", "--force", str(yard.path), "topic")
    (yard.path / "new").write_text("another's")
    for _ in range(2):
        await yard.mend()
    assert yard.trash.list() == [trashed]
    assert (box / "tree" / "untracked").read_text() == "precious"
    assert (yard.path / "new").read_text() == "another's"


# What stands in the way of a removal


def read_only(top: Path) -> Path:
    """A directory as the caches of some tools are."""
    cache = top / "cache" / "module"
    cache.mkdir(parents=True)
    (cache / "source").write_text("precious")
    for directory in (cache, cache.parent):
        directory.chmod(0o555)
    return cache


@pytest.mark.parametrize("disks", ["yard", "two_disks"])
async def test_what_is_read_only_is_removed_restored_and_emptied(
    disks: str, request: pytest.FixtureRequest
) -> None:
    yard: Yard = request.getfixturevalue(disks)
    await yard.make()
    read_only(yard.path)
    before = directory_contents(yard.path)
    with without_file_capabilities():
        await yard.remove()
        assert list(yard.path.parent.iterdir()) == []
        await check_trashed(yard, before)
        await yard.trash.delete(await yard.remove(), yard.repo.git_directories)
    assert list(yard.boxes.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
async def test_what_cannot_be_removed_of_the_original_is_litter_beside_a_whole_copy(two_disks: Yard) -> None:
    """As what a container made that ran as root."""
    yard = two_disks
    await yard.make()
    theirs = yard.path / "theirs"
    theirs.mkdir()
    (theirs / "file").write_text("precious")
    os.chown(theirs, 65534, 65534)
    before = directory_contents(yard.path)
    with without_file_capabilities(), capture_logs() as told:
        trashed = await yard.remove()
    litter = yard.path.with_name(f".topic.{trashed.id}.moved")
    assert [(each["event"], each["path"]) for each in told] == [
        ("leftovers of a worktree could not be deleted", str(litter))
    ]
    assert directory_contents(yard.boxes / trashed.id / "tree") == before
    os.chown(litter / "theirs", 0, 0)
    await yard.mend()
    assert not litter.exists()
    assert yard.trash.list() == [trashed]


@pytest.mark.parametrize("disks", ["yard", "two_disks"])
async def test_a_removal_that_can_neither_go_on_nor_back_keeps_what_it_has(
    disks: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard: Yard = request.getfixturevalue(disks)
    await yard.make()
    before = directory_contents(yard.path)
    rename = os.rename

    def rename_and_make_again(source: Path, target: Path) -> None:
        rename(source, target)
        if source == yard.path:
            yard.path.mkdir()
            (yard.path / "file").write_text("another's")

    monkeypatch.setattr(os, "rename", rename_and_make_again)
    yard.admin.parent.chmod(0o555)
    with without_file_capabilities(), pytest.raises(RemoteFault, match="cannot be moved"):
        await yard.remove()
    monkeypatch.undo()
    yard.admin.parent.chmod(0o755)
    (trashed,) = yard.trash.list()
    assert directory_contents(yard.boxes / trashed.id / "tree") == before
    assert (yard.path / "file").read_text() == "another's"
    await yard.mend()
    assert (yard.path / "file").read_text() == "another's"
    shutil.rmtree(yard.path)
    await check_trashed(yard, before)


async def test_who_stops_waiting_for_a_removal_loses_nothing(
    two_disks: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard = two_disks
    await yard.make()
    before = directory_contents(yard.path)
    removing, go_on, rmtree = threading.Event(), threading.Event(), shutil.rmtree

    def slow_rmtree(path: Path) -> None:
        removing.set()
        go_on.wait(30)
        rmtree(path)

    monkeypatch.setattr(shutil, "rmtree", slow_rmtree)
    taking = asyncio.ensure_future(yard.remove())
    await asyncio.to_thread(removing.wait, 30)
    taking.cancel()
    await asyncio.wait([taking])
    go_on.set()
    monkeypatch.undo()
    assert taking.cancelled()
    await yard.mend()
    await check_trashed(yard, before)


async def test_directories_that_only_look_like_our_leftovers_stay(yard: Yard) -> None:
    await removed(yard)
    theirs = [yard.path.with_name(name) for name in ("topic.partial", ".topic.moved")]
    for each in theirs:
        each.mkdir()
    await yard.mend()
    assert all(each.exists() for each in theirs)


async def test_a_box_without_its_record_is_swept(yard: Yard) -> None:
    trashed, _, _ = await removed(yard)
    (yard.boxes / "begun").mkdir()
    (yard.boxes / "begun" / ".record.json.0123").write_text("{")
    await yard.mend()
    assert [box.name for box in yard.boxes.iterdir()] == [trashed.id]


async def test_what_lies_in_the_trash_whole_stays_there_whatever_is_at_its_place(yard: Yard) -> None:
    trashed, box, _ = await removed(yard)
    yard.path.mkdir()
    (yard.path / "file").write_text("another's")
    await yard.mend()
    assert yard.trash.list() == [trashed]
    assert (box / "tree" / "untracked").exists()
    assert (yard.path / "file").read_text() == "another's"
