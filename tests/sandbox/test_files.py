"""Nothing a path says leads out of the workspace, and what is written is written whole and once."""

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
def test_a_way_out_is_refused(root: Path, path: str) -> None:
    for act in (lambda p: workspace(root).read_bytes(p), lambda p: workspace(root).write_bytes(p, b"x")):
        with pytest.raises(Forbidden):
            act(path.format(root=root))
    assert (root.parent / "secret").read_text() == "secret"


@pytest.mark.parametrize(
    ("path", "error"),
    [("", Invalid), ("a\0b", Invalid), (".", Invalid), ("a", Invalid), ("fifo", Invalid), ("none", NotFound)],
)
def test_what_is_no_file_is_refused_and_nothing_blocks(
    root: Path, path: str, error: type[BullpenError]
) -> None:
    with pytest.raises(error):
        workspace(root).read_bytes(path)


def test_a_file_is_made_with_its_directories_and_replaced_whole(root: Path) -> None:
    assert workspace(root).write_bytes("x/y/new", b"one")
    assert (root / "x/y/new").read_bytes() == b"one"
    before = (root / "x/y/new").stat().st_ino
    assert workspace(root).write_bytes("x/y/new", b"two")
    assert (root / "x/y/new").read_bytes() == b"two"
    assert (root / "x/y/new").stat().st_ino != before
    assert sorted(os.listdir(root / "x/y")) == ["new"]


def test_the_same_content_is_not_written_again(root: Path) -> None:
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


# Exchanges a directory and a link that leads out for as long as it runs, at the speed of the kernel.
SWAPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
top = os.open(sys.argv[1], os.O_PATH)
while True:
    libc.renameat2(top, b"swap", top, b"link", 2)
"""
NAMES = {errno.EXDEV, errno.ELOOP, errno.ENOTDIR}  # what a refusal is called


@pytest.fixture
def raced(root: Path) -> Iterator[int]:
    """The root, where the directory `swap` is every moment a link to what is outside, and back."""
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
    """What was read how often; None is a refusal. At least so many times, and until there was one of each."""
    seen: Counter[bytes | None] = Counter()
    while seen.total() < times or len(seen) < 2:
        try:
            fd = opening()
        except OSError as refused:
            assert refused.errno in NAMES, refused
            seen[None] += 1
            continue
        seen[os.read(fd, 100)] += 1
        os.close(fd)
    return seen


@pytest.mark.parametrize(("opening", "times"), [(open_beneath, 200_000), (walk_beneath, 50_000)])
def test_s10_a_link_that_is_swapped_all_the_time_never_leads_out(
    raced: int, opening: Callable[[int, str, int], int], times: int
) -> None:
    seen = race(times, lambda: opening(raced, "swap/secret", os.O_RDONLY))
    assert set(seen) == {b"mine", None}


def test_s10_the_same_race_is_lost_by_a_path_that_is_checked_and_then_opened(root: Path, raced: int) -> None:
    """So that the test above is known to show something."""

    def check_then_open() -> int:
        real = ""
        with suppress(OSError):  # it was swapped while its path was read
            real = os.path.realpath(root / "swap" / "secret")
        if not real.startswith(f"{root}/"):
            raise OSError(errno.EXDEV, "outside")
        return os.open(root / "swap" / "secret", os.O_RDONLY)

    seen: set[bytes | None] = set()
    while b"secret" not in seen:
        seen |= set(race(1000, check_then_open))


def test_without_the_kernels_help_no_link_is_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_SYS_OPENAT2", 9999)
    assert workspace(root).read_bytes("a/file") == b"hello"
    for path in ("in/file", "in-file", "out/secret", "out-file"):
        with pytest.raises(BullpenError):
            workspace(root).read_bytes(path)
