"""Nothing from outside is brought along by a copy, and nothing is written elsewhere."""

import os
from pathlib import Path

import pytest

from bullpen.sandbox.copying import copy_file
from bullpen.sandbox.files import WorkspaceFiles
from support.boundary import SingleRootBoundary


class Two:
    """Two workspaces, and what lies outside of both."""

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
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def test_a_file_is_copied_with_its_directories_mode_and_time(two: Two) -> None:
    (two.source / "a" / "b").mkdir(parents=True)
    file = two.source / "a" / "b" / ".env"
    file.write_text("KEY=1")
    file.chmod(0o640)
    os.utime(file, ns=(1, 2_000_000_001))
    assert two.copy("a/b/.env")
    copied = two.target / "a" / "b" / ".env"
    assert copied.read_text() == "KEY=1"
    assert copied.stat().st_mode & 0o777 == 0o640
    assert copied.stat().st_mtime_ns == 2_000_000_001


def test_what_is_there_already_stays(two: Two) -> None:
    (two.source / "file").write_text("new")
    (two.target / "file").write_text("old")
    assert not two.copy("file")
    assert (two.target / "file").read_text() == "old"


def test_the_copy_of_a_hard_link_is_a_file_of_its_own(two: Two) -> None:
    os.link(two.outside / "secret", two.source / "file")
    assert two.copy("file")
    (two.target / "file").write_text("changed")
    assert (two.outside / "secret").read_text() == "secret"


def test_a_link_to_something_inside_stays_a_link(two: Two) -> None:
    (two.source / "file").write_text("x")
    (two.source / "link").symlink_to("file")
    assert two.copy("link")
    assert os.readlink(two.target / "link") == "file"


@pytest.mark.parametrize("leads", ["{top}/outside/secret", "../outside/secret", "/etc/hostname"])
def test_a_link_that_leads_out_is_left_out(two: Two, leads: str) -> None:
    (two.source / "link").symlink_to(leads.format(top=two.source.parent))
    assert not two.copy("link")
    assert not os.path.lexists(two.target / "link")


def test_nothing_is_read_through_a_directory_that_is_a_link(two: Two) -> None:
    (two.source / "dir").symlink_to(two.outside)
    assert not two.copy("dir/secret")
    assert list(two.target.rglob("secret")) == []


def test_nothing_is_written_through_a_directory_that_is_a_link(two: Two) -> None:
    (two.source / "dir").mkdir()
    (two.source / "dir" / "planted").write_text("x")
    (two.target / "dir").symlink_to(two.outside)
    assert not two.copy("dir/planted")
    assert os.listdir(two.outside) == ["secret"]


def test_a_file_that_is_a_link_at_its_target_is_not_written_through(two: Two) -> None:
    (two.source / "file").write_text("x")
    (two.target / "file").symlink_to(two.outside / "secret")
    assert not two.copy("file")
    assert (two.outside / "secret").read_text() == "secret"


@pytest.mark.timeout(60)
def test_a_fifo_is_left_out_and_nothing_waits_for_it(two: Two) -> None:
    os.mkfifo(two.source / "fifo")
    assert not two.copy("fifo")
    assert os.listdir(two.target) == []


def test_what_is_gone_is_left_out(two: Two) -> None:
    assert not two.copy("gone")
    assert not two.copy("no/such/file")
    assert os.listdir(two.target) == []
