"""The changes of a work tree: every kind of change, any file name, and limits of size."""

import asyncio
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullpen.domain.errors import NotFound
from bullpen.git.diff import EMPTY_TREE, find_base, read_diff
from bullpen.git.diff_format import CUT, MAX_PATCH_BYTES, FileDiff, new_file
from bullpen.git.discovery import find_git_directories
from bullpen.git.git_directories import GitDirectories
from support.repositories import Repo

pytestmark = pytest.mark.usefixtures("confined")  # as in a server

NUMBERS = "".join(f"{n}\n" for n in range(1, 40))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


async def changed_files(place: GitDirectories) -> dict[str, FileDiff]:
    return {file.path: file for file in (await read_diff(place)).files}


def make_random_changes(repo: Repo, dice: random.Random) -> None:
    """Change twelve files at random, in a commit, in the index and in the work tree."""
    names = [f"f{number}" for number in range(12)]
    for number, name in enumerate(names):
        repo.write(name, NUMBERS + f"of {number}\n" * 5)
    repo.commit("all of them")
    repo.git("checkout", "-q", "-b", "topic")
    for step in range(3):  # committed, staged, unstaged
        for name in dice.sample(names, 6):
            change(repo, dice, name)
        if step < 2:
            repo.git("add", "-A")
        if step == 0:
            repo.git("commit", "-q", "--allow-empty", "-m", "on the branch")
    repo.write("intended", "to be added\n")
    repo.git("add", "-N", "intended")


def change(repo: Repo, dice: random.Random, name: str) -> None:
    path = repo.path / name
    match dice.choice(["edit", "edit", "remove", "move", "mode", "back"]):
        case "remove":
            path.unlink(missing_ok=True)
        case "move" if path.exists():
            path.rename(repo.path / f"{name}-moved")
        case "mode" if path.exists():
            path.chmod(path.stat().st_mode ^ 0o100)
        case "back":
            repo.write(name, NUMBERS)
        case _:
            repo.write(name, NUMBERS.replace("\n7\n", f"\n{dice.randrange(100)}\n"))


@pytest.mark.parametrize("seed", range(12))
async def test_staged_and_unstaged_changes_equal_those_of_git_status(repo: Repo, seed: int) -> None:
    make_random_changes(repo, random.Random(seed))
    lines = repo.git("status", "--porcelain", "--no-renames", "--untracked-files=all", "-z").split("\0")[:-1]
    status = {line[3:]: (line[0] != " ", line[1] != " ") for line in lines if not line.startswith("??")}
    tracked = await read_diff(repo.git_directories)
    found = {file.path: (file.staged, file.unstaged) for file in tracked.files}
    assert found == {path: status.get(path, (False, False)) for path in found}
    assert len(found) > 5
    assert sorted(tracked.untracked) == sorted(line[3:] for line in lines if line.startswith("??"))
    assert tracked.branch == "topic"


async def test_an_unmerged_file_is_staged_and_unstaged(repo: Repo) -> None:
    repo.write("both", "one\n")
    repo.commit("first")
    repo.git("checkout", "-q", "-b", "topic")
    repo.write("both", "ours\n")
    repo.commit("ours")
    repo.git("checkout", "-q", "main")
    repo.write("both", "theirs\n")
    repo.commit("theirs")
    repo.git("checkout", "-q", "topic")
    repo.git("merge", "-q", "main", check=False)
    both = (await changed_files(repo.git_directories))["both"]
    assert (both.staged, both.unstaged) == (True, True)


async def test_every_kind_of_change_has_its_status(repo: Repo) -> None:
    repo.write("changed", NUMBERS)
    repo.write("gone", "bye\n")
    repo.write("moved", NUMBERS + "and more\n")
    repo.write("picture", "\0\1")
    repo.write("plain", "x\n")
    repo.commit("second")
    repo.write("changed", NUMBERS.replace("\n7\n", "\nseven\n"))
    (repo.path / "gone").unlink()
    repo.git("mv", "moved", 'to "there" ü')
    repo.write("picture", "\0\2")
    repo.write("added", "new\n")
    repo.git("add", "added")
    (repo.path / "plain").unlink()
    os.symlink("changed", repo.path / "plain")
    files = await changed_files(repo.git_directories)
    found = {path: (file.status, file.additions, file.deletions, file.binary) for path, file in files.items()}
    assert found == {
        "added": ("added", 1, 0, False),
        "changed": ("modified", 1, 1, False),
        "gone": ("deleted", 0, 1, False),
        "picture": ("modified", None, None, True),
        "plain": ("type changed", 1, 1, False),
        'to "there" ü': ("renamed", 0, 0, False),
    }
    assert files['to "there" ü'].old_path == "moved"
    (hunk,) = files["changed"].hunks
    assert (hunk.old_start, hunk.new_start) == (4, 4)
    assert "-7\n+seven\n" in files["changed"].patch
    assert all(file.patch.startswith("diff --git ") for file in files.values())
    assert files["plain"].patch.count("diff --git ") == 2


NAMES = st.text(st.characters(blacklist_characters="/\0", codec="utf-8"), min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..", ".git") and len(name.encode()) < 100
)


@settings(max_examples=15, deadline=None)
@given(names=st.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower))
def test_a_file_of_any_name_has_its_patch(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    repo = Repo(tmp_path_factory.mktemp("names") / "repo")
    for name in names:
        (repo.path / name).write_text(f"{name}\n")
    repo.git("add", "-A")
    files = asyncio.run(changed_files(repo.git_directories))
    assert set(files) - {"readme.txt"} == set(names) - {"readme.txt"}
    for file in files.values():
        assert file.patch.startswith("diff --git ")


async def test_the_base_is_where_the_branch_left_the_main_line(repo: Repo) -> None:
    base = repo.git("rev-parse", "HEAD").strip()
    place = repo.add_worktree("topic")
    repo.write("on-main", "later\n")
    repo.commit("later work on main")
    (place.work_tree / "mine").write_text("x\n")
    repo.commit("work", cwd=place.work_tree)
    assert await find_base(place) == base
    assert list(await changed_files(place)) == ["mine"]
    assert await find_base(repo.git_directories) == repo.git("rev-parse", "HEAD").strip()
    with pytest.raises(NotFound, match="no commit nowhere"):
        await find_base(place, "nowhere")


async def test_the_base_of_a_repository_without_a_commit_is_the_empty_tree(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    repo.git("update-ref", "-d", "HEAD")
    assert (await read_diff(repo.git_directories)).base == EMPTY_TREE
    assert (await changed_files(repo.git_directories))["readme.txt"].status == "added"


async def test_a_patch_that_is_too_large_is_cut_with_a_note(repo: Repo) -> None:
    repo.write("large", "x" * 70 + "\n")
    repo.commit("second")
    repo.write("large", ("y" * 70 + "\n") * 10_000)
    file = (await changed_files(repo.git_directories))["large"]
    assert file.note == CUT
    assert file.additions == 10_000
    assert len(file.patch) <= MAX_PATCH_BYTES
    assert file.patch.endswith("\n")


@settings(max_examples=15, deadline=None)
@given(content=st.text("ab\n\t ü\0\f", max_size=200).map(str.encode))
def test_a_new_file_is_shown_as_git_shows_it(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shown = new_file(b"new", content)
    repo = Repo(tmp_path_factory.mktemp("new") / "repo")
    (repo.path / "new").write_bytes(content)
    repo.git("add", "new")
    numbers = repo.git("diff", "--cached", "--numstat", "--", "new").split("\t")[:2]
    expected = ["-", "-"] if shown.binary else [str(shown.additions), "0"]
    assert numbers == expected or (not content and numbers == ["0", "0"])
    if not shown.binary and content:
        of_git = repo.git("diff", "--cached", "--", "new")
        assert shown.patch.partition("@@")[1:] == of_git.partition("@@")[1:]


def test_only_a_worktree_that_its_repository_lists_is_accepted(repo: Repo, tmp_path: Path) -> None:
    place = repo.add_worktree("topic")
    assert find_git_directories(repo.path) == repo.git_directories
    assert find_git_directories(repo.path / "deep" / "down") == repo.git_directories
    assert find_git_directories(place.work_tree) == place
    assert find_git_directories(tmp_path / "elsewhere") is None
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / ".git").write_text(f"gitdir: {place.git_dir}\n")
    assert find_git_directories(foreign) is None
    inside = place.work_tree / "fake"
    Repo(inside)
    (inside / ".git" / "worktrees" / "x").mkdir(parents=True)
    (inside / ".git" / "worktrees" / "x" / "gitdir").write_text(str(place.work_tree / ".git"))
    (place.work_tree / ".git").write_text(f"gitdir: {inside}/.git/worktrees/x\n")
    assert find_git_directories(place.work_tree) is None
