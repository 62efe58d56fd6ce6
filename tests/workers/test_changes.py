"""The changes of a work tree never show a protected file, also a deleted, renamed or linked one."""

import os
from pathlib import Path

import pytest

from bullpen.sandbox.files import WorkspaceFiles
from bullpen.workers.changes import WorkspaceChanges, read_changes
from support.boundary import SingleRootBoundary
from support.repositories import Repo

KEY = "".join(f"line {number} of a private key\n" for number in range(50))


class HomeRepository(Repo):
    """A home directory that is a repository, with tracked credentials and a data directory inside."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.data = path / "data"
        self.data.mkdir()
        (self.data / "token").write_text("owner-token\n")
        self.write(".gitignore", "data\n")
        for name in (".ssh/id", ".netrc", "other"):
            self.write(name, KEY)
        self.commit("home")

    async def changes(self, *, secrets: bool = False) -> WorkspaceChanges:
        boundary = SingleRootBoundary(self.path, [self.data], [self.path])
        return await read_changes(WorkspaceFiles(str(self.path), boundary, secrets=secrets))


@pytest.fixture
def home(tmp_path: Path) -> HomeRepository:
    return HomeRepository(tmp_path / "home")


def names(changes: WorkspaceChanges) -> list[str]:
    return [file.path for file in changes.files]


async def test_a_deleted_secret_is_shown_to_an_administrator_only(home: HomeRepository) -> None:
    for name in (".ssh/id", ".netrc", "other"):
        (home.path / name).unlink()
    assert names(await home.changes()) == ["other"]
    assert names(await home.changes(secrets=True)) == [".netrc", ".ssh/id", "other"]


async def test_a_file_that_was_a_secret_before_it_was_renamed_is_not_shown(home: HomeRepository) -> None:
    home.git("mv", ".ssh/id", "moved")
    (home.path / "moved").write_text(KEY.removeprefix("line 0 of a private key\n"))
    assert names(await home.changes()) == []
    (shown,) = (await home.changes(secrets=True)).files
    assert (shown.path, shown.old_path) == ("moved", ".ssh/id")


async def test_a_hard_link_is_not_shown_under_a_name_that_is_not_utf_8(home: HomeRepository) -> None:
    tracked = os.path.join(os.fsencode(home.path), b"name-\xff")
    for name in (b"", b"-visible"):
        with open(tracked + name, "w") as file:
            file.write("hello\n")
    home.commit("names")
    os.unlink(tracked)
    os.link(home.data / "token", tracked)
    with open(tracked + b"-visible", "w") as file:
        file.write("changed\n")
    (shown,) = (await home.changes(secrets=True)).files
    assert shown.path == "name-\ufffd-visible"
    assert "+changed" in shown.patch
