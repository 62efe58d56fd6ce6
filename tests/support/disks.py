"""Disks that a test can fill: by a file size limit, or by a small file system if mounting is allowed."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

TINY_DISK_BYTES = 16 * 1024 * 1024  # so that an empty disk has room for twice the ballast


class Disk(Protocol):
    path: Path

    def fill(self) -> None: ...

    def free(self) -> None: ...


class LimitedDisk:
    """Limit the size of files of this process. A write beyond the limit fails, for SQLite with IOERR."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        largest = max(file.stat().st_size for file in self.path.glob("*-wal"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, self._before[1]))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._before)


class TinyDisk:
    """A file system of a few megabytes: a write beyond them fails with ENOSPC."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        with self._filler.open("ab", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    continue

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)


@contextmanager
def tiny_disk(path: Path) -> Iterator[TinyDisk]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={TINY_DISK_BYTES}", "tmpfs", path], check=True)
    try:
        yield TinyDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


@contextmanager
def limited_disk(path: Path) -> Iterator[LimitedDisk]:
    disk = LimitedDisk(path)
    try:
        yield disk
    finally:
        disk.free()


# Mounting needs root.
DISK_KINDS = {"limited": limited_disk} | ({"tiny": tiny_disk} if os.geteuid() == 0 else {})


@pytest.fixture(params=DISK_KINDS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    path = tmp_path / "disk"
    path.mkdir()
    with DISK_KINDS[request.param](path) as made:
        yield made
