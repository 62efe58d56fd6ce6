"""Bullpen's own files and the user's secrets are refused, whatever way leads to them."""

import errno
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.domain.errors import BullpenError, Forbidden, NotFound, Unavailable
from bullpen.sandbox.copying import copy_file
from bullpen.sandbox.files import DirectoryListing, WorkspaceFiles
from bullpen.sandbox.protected import ProtectedPlaces
from support.boundary import SingleRootBoundary

# Opens of each path that another process swaps all the time.
OPENS = 100_000 if os.environ.get("BULLPEN_FAULTS") == "full" else 8_000


class House:
    """A home directory that is a workspace root, with Bullpen's data directory and keys inside."""

    def __init__(self, top: Path) -> None:
        self.home = top / "home"
        self.data = self.home / ".local/share/bullpen"
        (self.data / "recordings/one").mkdir(parents=True)
        (self.data / "token").write_text("owner-token")
        (self.data / "recordings/one/events.jsonl").write_text("recorded")
        (self.home / ".ssh").mkdir()
        (self.home / ".ssh/id_ed25519").write_text("private-key")
        (self.home / ".netrc").write_text("password")
        (self.home / "project").mkdir()
        (self.home / "project/file").write_text("hello")
        self.boundary = SingleRootBoundary(self.home, [self.data], [self.home])

    def files(self, root: str = "", *, secrets: bool = False) -> WorkspaceFiles:
        return WorkspaceFiles(str(self.home / root), self.boundary, secrets=secrets)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


OWN = [
    ".local/share/bullpen/token",
    ".local/share/bullpen/recordings/one/events.jsonl",
    ".local/share/bullpen",
    ".local/share/bullpen/recordings",
    ".local/../.local/share/bullpen/token",
]
SECRET = [".ssh/id_ed25519", ".ssh", ".netrc"]


@pytest.mark.parametrize("path", OWN)
def test_the_data_directory_is_refused_to_every_caller(house: House, path: str) -> None:
    for secrets in (False, True):
        with pytest.raises(Forbidden):
            house.files(secrets=secrets).read_any(path)


@pytest.mark.parametrize("path", SECRET)
def test_secret_places_of_a_home_are_refused_below_admin_only(house: House, path: str) -> None:
    with pytest.raises(Forbidden):
        house.files().read_any(path)
    assert house.files(secrets=True).read_any(path)


@pytest.mark.parametrize("path", [*OWN, *SECRET, ".local/share/bullpen/new", ".ssh/authorized_keys"])
def test_nothing_is_written_to_a_protected_place(house: House, path: str) -> None:
    with pytest.raises(BullpenError):
        house.files().write_bytes(path, b"mine")
    assert (house.data / "token").read_text() == "owner-token"
    assert not (house.data / "new").exists()
    assert not (house.home / ".ssh/authorized_keys").exists()


def test_a_symbolic_link_to_a_protected_place_is_refused(house: House) -> None:
    (house.home / "project/link").symlink_to("../.local/share/bullpen/token")
    (house.home / "project/directory").symlink_to("../.local/share/bullpen")
    for path in ("project/link", "project/directory", "project/directory/token"):
        with pytest.raises(Forbidden):
            house.files().read_any(path)


def test_a_hard_link_to_a_protected_file_is_refused_and_not_listed(house: House) -> None:
    os.link(house.data / "recordings/one/events.jsonl", house.home / "project/events")
    os.link(house.home / ".ssh/id_ed25519", house.home / "project/key")
    os.link(house.home / "project/file", house.home / "project/second-name")
    with pytest.raises(Forbidden):
        house.files("project", secrets=True).read_any("events")
    with pytest.raises(Forbidden):
        house.files("project").read_any("key")
    assert house.files("project").read_any("second-name") == b"hello"
    listing = house.files("project").read_any(".")
    assert isinstance(listing, DirectoryListing)
    assert [entry.name for entry in listing.entries] == ["file", "second-name"]


def test_a_hard_link_is_refused_however_new_the_protected_file_and_the_link_are(house: House) -> None:
    files = house.files("project", secrets=True)
    for number in range(5):  # far less than MAX_INDEX_AGE from one to the next
        (house.data / f"token-{number}").write_text("secret")
        os.link(house.data / f"token-{number}", house.home / "project" / f"link-{number}")
        with pytest.raises(Forbidden):
            files.read_any(f"link-{number}")
        listing = files.read_any(".")
        assert isinstance(listing, DirectoryListing)
        assert [entry.name for entry in listing.entries] == ["file"]


def test_a_hard_link_is_refused_while_the_data_directory_cannot_be_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.link(house.data / "token", house.home / "project/link")

    def fail(path: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr("os.scandir", fail)
    with pytest.raises(Unavailable):
        house.files("project").read_any("link")


def test_a_loop_of_links_in_a_secret_place_protects_nothing_else(house: House) -> None:
    (house.home / ".docker").symlink_to(".docker")
    assert house.files("project").read_any("file") == b"hello"


def test_changes_below_a_data_directory_that_is_named_by_a_link_are_not_watched(house: House) -> None:
    (house.home / "link").symlink_to(house.data)
    places = ProtectedPlaces([house.home / "link"], [])
    assert places.is_below(str(house.data / "bullpen.db-wal"))
    assert not places.is_below(str(house.home / "project/file"))


def test_a_protected_place_is_not_listed(house: House) -> None:
    (house.data.parent / "other").mkdir()
    listing = house.files().read_any(".local/share")
    assert isinstance(listing, DirectoryListing)
    assert [entry.name for entry in listing.entries] == ["other"]


def test_a_bind_mount_of_a_part_of_the_data_directory_is_refused(house: House) -> None:
    mounted = house.home / "project/mounted"
    mounted.mkdir()
    subprocess.run(["mount", "--bind", house.data / "recordings", mounted], check=True)
    try:
        for path in ("mounted", "mounted/one", "mounted/one/events.jsonl"):
            with pytest.raises(Forbidden):
                house.files("project").read_any(path)
        with pytest.raises(Forbidden):
            house.files("project/mounted").read_any("one/events.jsonl")
    finally:
        subprocess.run(["umount", mounted], check=True)


@pytest.mark.parametrize("root", [".local/share/bullpen", ".local/share/bullpen/recordings"])
def test_the_data_directory_is_no_workspace(house: House, root: str) -> None:
    with pytest.raises(Forbidden):
        house.files(root).read_any(".")
    with pytest.raises(Forbidden):
        WorkspaceFiles(f"/proc/self/root{house.home / root}", house.boundary).read_any(".")


def test_a_protected_file_is_not_copied_to_another_workspace(house: House) -> None:
    (house.home / "copy").mkdir()
    os.link(house.data / "token", house.home / "project/token")
    assert not copy_file(house.files("project"), house.files("copy"), "token")
    assert not copy_file(house.files(), house.files("copy"), ".local/share/bullpen/token")
    assert copy_file(house.files("project"), house.files("copy"), "file")
    assert os.listdir(house.home / "copy") == ["file"]


# Exchanges a file of the workspace and another name of a protected one for as long as the program runs.
SWAPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
top = os.open(sys.argv[1], os.O_PATH)
while True:
    libc.renameat2(top, b"swap", top, b"other", 2)
"""


@pytest.fixture(params=["symbolic link", "hard link", "link to a directory"])
def swapped(house: House, request: pytest.FixtureRequest) -> Iterator[str]:
    """A path that is a file of the workspace at one moment and leads to the token at the next."""
    project = house.home / "project"
    path = "swap"
    match request.param:
        case "symbolic link":
            (project / "swap").write_text("hello")
            (project / "other").symlink_to("../.local/share/bullpen/token")
        case "hard link":
            (project / "swap").write_text("hello")
            os.link(house.data / "token", project / "other")
        case _:
            (project / "swap").mkdir()
            (project / "swap/token").write_text("hello")
            (project / "other").symlink_to("../.local/share/bullpen")
            path = "swap/token"
    swapper = subprocess.Popen([sys.executable, "-c", SWAPPER, project])
    yield f"project/{path}"
    swapper.kill()
    swapper.wait()


def test_no_open_of_a_path_that_is_swapped_all_the_time_serves_a_protected_file(
    house: House, swapped: str
) -> None:
    files = house.files(secrets=True)
    seen: Counter[bytes | None] = Counter()
    while seen.total() < OPENS or len(seen) < 2:
        try:
            seen[files.read_bytes(swapped)] += 1
        except (Forbidden, NotFound):
            seen[None] += 1
    assert set(seen) == {b"hello", None}
    print(f"{seen.total():,} opens of {swapped}: {seen[b'hello']:,} served the file of the workspace")
