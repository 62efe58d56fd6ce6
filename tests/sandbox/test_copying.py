"""A copy between workspaces reads and writes nothing outside them."""

import os
from pathlib import Path

import pytest

from bullpen.sandbox.copying import copy_file
from bullpen.sandbox.files import WorkspaceFiles
from support.boundary import SingleRootBoundary


class TwoWorkspaces:
    """Two workspaces, and a directory outside both."""

    def __init__(self, top: Path) -> None:
        self.outside = top / "outside"
        self.source = top / "source"
        self.target = top / "target"
        for each in (self.outside, self.source, self.target):
            each.mkdir()
        (self.outside / "secret").write_text("secret")

    def copy(self, name: str) -> bool:
        boundary = SingleRootBoundary(self.source.parent)
        source, target = (WorkspaceFiles(str(each), boundary) for each in (self.source, self.target))
        return copy_file(source, target, name)


@pytest.fixture
def workspaces(tmp_path: Path) -> TwoWorkspaces:
    return TwoWorkspaces(tmp_path)


def test_a_file_is_copied_with_its_directories_mode_and_time(workspaces: TwoWorkspaces) -> None:
    (workspaces.source / "a" / "b").mkdir(parents=True)
    file = workspaces.source / "a" / "b" / ".env"
    file.write_text("KEY=1")
    file.chmod(0o640)
    os.utime(file, ns=(1, 2_000_000_001))
    assert workspaces.copy("a/b/.env")
    copied = workspaces.target / "a" / "b" / ".env"
    assert copied.read_text() == "KEY=1"
    assert copied.stat().st_mode & 0o777 == 0o640
    assert copied.stat().st_mtime_ns == 2_000_000_001


def test_an_existing_file_is_not_overwritten(workspaces: TwoWorkspaces) -> None:
    (workspaces.source / "file").write_text("new")
    (workspaces.target / "file").write_text("old")
    assert not workspaces.copy("file")
    assert (workspaces.target / "file").read_text() == "old"


def test_the_copy_of_a_hard_link_is_a_separate_file(workspaces: TwoWorkspaces) -> None:
    os.link(workspaces.outside / "secret", workspaces.source / "file")
    assert workspaces.copy("file")
    (workspaces.target / "file").write_text("changed")
    assert (workspaces.outside / "secret").read_text() == "secret"


def test_a_link_to_a_file_in_the_workspace_is_copied_as_a_link(workspaces: TwoWorkspaces) -> None:
    (workspaces.source / "file").write_text("x")
    (workspaces.source / "link").symlink_to("file")
    assert workspaces.copy("link")
    assert os.readlink(workspaces.target / "link") == "file"


@pytest.mark.parametrize("target", ["{top}/outside/secret", "../outside/secret", "/etc/hostname"])
def test_a_link_that_leads_out_of_the_workspace_is_not_copied(workspaces: TwoWorkspaces, target: str) -> None:
    (workspaces.source / "link").symlink_to(target.format(top=workspaces.source.parent))
    assert not workspaces.copy("link")
    assert not os.path.lexists(workspaces.target / "link")


def test_nothing_is_read_through_a_directory_that_is_a_link(workspaces: TwoWorkspaces) -> None:
    (workspaces.source / "dir").symlink_to(workspaces.outside)
    assert not workspaces.copy("dir/secret")
    assert list(workspaces.target.rglob("secret")) == []


def test_nothing_is_written_through_a_directory_that_is_a_link(workspaces: TwoWorkspaces) -> None:
    (workspaces.source / "dir").mkdir()
    (workspaces.source / "dir" / "planted").write_text("x")
    (workspaces.target / "dir").symlink_to(workspaces.outside)
    assert not workspaces.copy("dir/planted")
    assert os.listdir(workspaces.outside) == ["secret"]


def test_a_file_that_is_a_link_at_its_target_is_not_written_through(workspaces: TwoWorkspaces) -> None:
    (workspaces.source / "file").write_text("x")
    (workspaces.target / "file").symlink_to(workspaces.outside / "secret")
    assert not workspaces.copy("file")
    assert (workspaces.outside / "secret").read_text() == "secret"


@pytest.mark.timeout(60)
def test_a_fifo_is_not_copied_and_does_not_block(workspaces: TwoWorkspaces) -> None:
    os.mkfifo(workspaces.source / "fifo")
    assert not workspaces.copy("fifo")
    assert os.listdir(workspaces.target) == []


def test_a_missing_file_is_not_copied(workspaces: TwoWorkspaces) -> None:
    assert not workspaces.copy("gone")
    assert not workspaces.copy("no/such/file")
    assert os.listdir(workspaces.target) == []
