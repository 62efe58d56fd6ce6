"""No path leads out of a workspace, and a file is replaced atomically."""

import errno
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bullpen.domain.errors import BullpenError, Forbidden, Invalid, NotFound
from bullpen.sandbox import files
from bullpen.sandbox.files import WorkspaceFiles, open_beneath, walk_beneath
from support.boundary import SingleRootBoundary


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "root-sibling").mkdir()
    (tmp_path / "root-sibling" / "secret").write_text("secret")
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "file").write_text("hello")
    (root / "out").symlink_to(tmp_path)
    (root / "out-file").symlink_to(tmp_path / "secret")
    (root / "in").symlink_to("a")
    (root / "in-file").symlink_to("a/file")
    os.mkfifo(root / "fifo")
    return root


def workspace(root: Path) -> WorkspaceFiles:
    return WorkspaceFiles(str(root), SingleRootBoundary(root))


@pytest.mark.parametrize(
    "path", ["a/file", "{root}/a/file", "a/../a/file", "./a//file", "in/file", "in-file"]
)
def test_a_file_inside_is_read(root: Path, path: str) -> None:
    assert workspace(root).read_bytes(path.format(root=root)) == b"hello"


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "{root}/../secret",
        "/etc/passwd",
        "a/../../secret",
        "out/secret",
        "out-file",
        "{root}-sibling/secret",
    ],
)
def test_a_path_that_leads_out_of_the_workspace_is_refused(root: Path, path: str) -> None:
    for act in (lambda p: workspace(root).read_bytes(p), lambda p: workspace(root).write_bytes(p, b"x")):
        with pytest.raises(Forbidden):
            act(path.format(root=root))
    assert (root.parent / "secret").read_text() == "secret"


@pytest.mark.parametrize(
    ("path", "error"),
    [("", Invalid), ("a\0b", Invalid), (".", Invalid), ("a", Invalid), ("fifo", Invalid), ("none", NotFound)],
)
def test_a_path_that_is_no_regular_file_is_refused_and_does_not_block(
    root: Path, path: str, error: type[BullpenError]
) -> None:
    with pytest.raises(error):
        workspace(root).read_bytes(path)


def test_a_file_is_created_with_its_directories_and_replaced_atomically(root: Path) -> None:
    assert workspace(root).write_bytes("x/y/new", b"one")
    assert (root / "x/y/new").read_bytes() == b"one"
    before = (root / "x/y/new").stat().st_ino
    assert workspace(root).write_bytes("x/y/new", b"two")
    assert (root / "x/y/new").read_bytes() == b"two"
    assert (root / "x/y/new").stat().st_ino != before
    assert sorted(os.listdir(root / "x/y")) == ["new"]


def test_unchanged_content_is_not_written_again(root: Path) -> None:
    before = (root / "a/file").stat()
    assert not workspace(root).write_bytes("a/file", b"hello")
    after = (root / "a/file").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_replaced_file_keeps_its_mode_and_the_links_to_it(root: Path) -> None:
    (root / "a/file").chmod(0o751)
    assert workspace(root).write_bytes("in-file", b"new")
    assert (root / "in-file").is_symlink()
    assert (root / "a/file").read_bytes() == b"new"
    assert (root / "a/file").stat().st_mode & 0o777 == 0o751


# Exchanges a directory with a link that leads out of the workspace, until it is killed.
SWAPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
top = os.open(sys.argv[1], os.O_PATH)
while True:
    libc.renameat2(top, b"swap", top, b"link", 2)
"""
REFUSALS = {errno.EXDEV, errno.ELOOP, errno.ENOTDIR}


@pytest.fixture
def raced(root: Path) -> Iterator[int]:
    """Return the root, in which `swap` is constantly exchanged with a link to the directory outside."""
    (root / "swap").mkdir()
    (root / "swap" / "secret").write_text("mine")
    (root / "link").symlink_to(root.parent)
    swapper = subprocess.Popen([sys.executable, "-c", SWAPPER, root])
    top = os.open(root, os.O_PATH)
    yield top
    os.close(top)
    swapper.kill()
    swapper.wait()


def race(times: int, opening: Callable[[], int]) -> Counter[bytes | None]:
    """Count the results of at least `times` opens, until there are two different ones. None is a refusal."""
    results: Counter[bytes | None] = Counter()
    while results.total() < times or len(results) < 2:
        try:
            fd = opening()
        except OSError as refused:
            assert refused.errno in REFUSALS, refused
            results[None] += 1
            continue
        results[os.read(fd, 100)] += 1
        os.close(fd)
    return results


@pytest.mark.parametrize(("opening", "times"), [(open_beneath, 200_000), (walk_beneath, 50_000)])
def test_a_link_that_is_exchanged_constantly_never_leads_out_of_the_workspace(
    raced: int, opening: Callable[[int, str, int], int], times: int
) -> None:
    results = race(times, lambda: opening(raced, "swap/secret", os.O_RDONLY))
    assert set(results) == {b"mine", None}


def test_checking_a_path_before_opening_it_loses_the_same_race(root: Path, raced: int) -> None:
    """This shows that the test above can fail."""

    def check_then_open() -> int:
        real = ""
        with suppress(OSError):  # it was exchanged while its path was read
            real = os.path.realpath(root / "swap" / "secret")
        if not real.startswith(f"{root}/"):
            raise OSError(errno.EXDEV, "outside")
        return os.open(root / "swap" / "secret", os.O_RDONLY)

    results: set[bytes | None] = set()
    while b"secret" not in results:
        results |= set(race(1000, check_then_open))


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("a/file", "a"),
        ("a/b/c/file", "a"),
        ("in/file", "a"),
        ("file", "."),
        ("new/file", "."),
        ("out/file", "."),
        ("out/root/a/file", "."),
        ("fifo/file", "."),
    ],
)
def test_the_nearest_directory_of_a_file_is_inside_the_workspace(root: Path, path: str, nearest: str) -> None:
    assert workspace(root).nearest_directory(path) == os.path.realpath(root / nearest)
    with pytest.raises(Forbidden):
        workspace(root).nearest_directory(f"../{path}")


def test_without_openat2_no_link_is_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_SYS_OPENAT2", 9999)
    assert workspace(root).read_bytes("a/file") == b"hello"
    for path in ("in/file", "in-file", "out/secret", "out-file"):
        with pytest.raises(BullpenError):
            workspace(root).read_bytes(path)
    assert workspace(root).nearest_directory("in/file") == workspace(root).nearest_directory("file")
