"""Nothing a path says leads out of the workspace, and what is written is written whole and once."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.domain.errors import BullpenError, Forbidden, Invalid, NotFound
from bullpen.sandbox import files
from bullpen.sandbox.files import open_beneath, read_bytes, walk_beneath, write_bytes


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


@pytest.mark.parametrize(
    "path", ["a/file", "{root}/a/file", "a/../a/file", "./a//file", "in/file", "in-file"]
)
def test_a_file_inside_is_read(root: Path, path: str) -> None:
    assert read_bytes(str(root), path.format(root=root)) == b"hello"


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
    for act in (lambda p: read_bytes(str(root), p), lambda p: write_bytes(str(root), p, b"x")):
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
        read_bytes(str(root), path)


def test_a_file_is_made_with_its_directories_and_replaced_whole(root: Path) -> None:
    assert write_bytes(str(root), "x/y/new", b"one")
    assert (root / "x/y/new").read_bytes() == b"one"
    before = (root / "x/y/new").stat().st_ino
    assert write_bytes(str(root), "x/y/new", b"two")
    assert (root / "x/y/new").read_bytes() == b"two"
    assert (root / "x/y/new").stat().st_ino != before
    assert sorted(os.listdir(root / "x/y")) == ["new"]


def test_the_same_content_is_not_written_again(root: Path) -> None:
    before = (root / "a/file").stat()
    assert not write_bytes(str(root), "a/file", b"hello")
    after = (root / "a/file").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_replaced_file_keeps_its_mode_and_the_links_to_it(root: Path) -> None:
    (root / "a/file").chmod(0o751)
    assert write_bytes(str(root), "in-file", b"new")
    assert (root / "in-file").is_symlink()
    assert (root / "a/file").read_bytes() == b"new"
    assert (root / "a/file").stat().st_mode & 0o777 == 0o751


@pytest.mark.parametrize("opening", [open_beneath, walk_beneath])
def test_a_link_that_is_swapped_all_the_time_never_leads_out(
    root: Path, opening: Callable[[int, str, int], int]
) -> None:
    (root / "swap").mkdir()
    (root / "swap" / "secret").write_text("mine")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            os.rename(root / "swap", root / "kept")
            os.symlink(root.parent, root / "swap")
            os.unlink(root / "swap")
            os.rename(root / "kept", root / "swap")

    swapper = threading.Thread(target=swap)
    swapper.start()
    top = os.open(root, os.O_PATH)
    seen: set[bytes] = set()
    try:
        tries = 0
        while tries < 5000 or (not seen and tries < 1_000_000):
            tries += 1
            try:
                fd = opening(top, "swap/secret", os.O_RDONLY)
            except OSError:
                continue
            seen.add(os.read(fd, 100))
            os.close(fd)
    finally:
        over.set()
        swapper.join()
        os.close(top)
    assert seen <= {b"mine"}
    assert seen


def test_without_the_kernels_help_no_link_is_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_SYS_OPENAT2", 9999)
    assert read_bytes(str(root), "a/file") == b"hello"
    for path in ("in/file", "in-file", "out/secret", "out-file"):
        with pytest.raises(BullpenError):
            read_bytes(str(root), path)
