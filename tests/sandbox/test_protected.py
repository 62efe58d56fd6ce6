"""Protected places are refused on every path: Bullpen's own data, and credentials of the user."""

import errno
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bullpen.domain.errors import BullpenError, Forbidden, NotFound, Unavailable
from bullpen.sandbox.copying import copy_file
from bullpen.sandbox.files import DirectoryListing, WorkspaceFiles
from bullpen.sandbox.protected import ProtectedPlaces
from support.boundary import SingleRootBoundary

# Number of opens of each path that another process exchanges constantly.
OPENS = 100_000 if os.environ.get("BULLPEN_FAULTS") == "full" else 8_000


class ProtectedHome:
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
def protected(tmp_path: Path) -> ProtectedHome:
    return ProtectedHome(tmp_path)


DATA_PATHS = [
    ".local/share/bullpen/token",
    ".local/share/bullpen/recordings/one/events.jsonl",
    ".local/share/bullpen",
    ".local/share/bullpen/recordings",
    ".local/../.local/share/bullpen/token",
]
SECRET_PATHS = [".ssh/id_ed25519", ".ssh", ".netrc"]


@pytest.mark.parametrize("path", DATA_PATHS)
def test_the_data_directory_is_refused_to_every_caller(protected: ProtectedHome, path: str) -> None:
    for secrets in (False, True):
        with pytest.raises(Forbidden):
            protected.files(secrets=secrets).read_any(path)


@pytest.mark.parametrize("path", SECRET_PATHS)
def test_secret_places_of_a_home_are_refused_to_callers_without_admin(
    protected: ProtectedHome, path: str
) -> None:
    with pytest.raises(Forbidden):
        protected.files().read_any(path)
    assert protected.files(secrets=True).read_any(path)


@pytest.mark.parametrize(
    "path", [*DATA_PATHS, *SECRET_PATHS, ".local/share/bullpen/new", ".ssh/authorized_keys"]
)
def test_nothing_is_written_to_a_protected_place(protected: ProtectedHome, path: str) -> None:
    with pytest.raises(BullpenError):
        protected.files().write_bytes(path, b"mine")
    assert (protected.data / "token").read_text() == "owner-token"
    assert not (protected.data / "new").exists()
    assert not (protected.home / ".ssh/authorized_keys").exists()


def test_a_symbolic_link_to_a_protected_place_is_refused(protected: ProtectedHome) -> None:
    (protected.home / "project/link").symlink_to("../.local/share/bullpen/token")
    (protected.home / "project/directory").symlink_to("../.local/share/bullpen")
    for path in ("project/link", "project/directory", "project/directory/token"):
        with pytest.raises(Forbidden):
            protected.files().read_any(path)


def test_a_protected_directory_is_not_the_nearest_one_of_a_file(protected: ProtectedHome) -> None:
    (protected.home / "project/directory").symlink_to("../.local/share/bullpen")
    for path, nearest in (
        ("project/directory/token", "project"),
        (".local/share/bullpen/new", ".local/share"),
        (".ssh/config", ""),
    ):
        assert protected.files().nearest_directory(path) == str(protected.home / nearest)
    assert protected.files(secrets=True).nearest_directory(".ssh/config") == str(protected.home / ".ssh")


def test_a_hard_link_to_a_protected_file_is_refused_and_not_listed(protected: ProtectedHome) -> None:
    os.link(protected.data / "recordings/one/events.jsonl", protected.home / "project/events")
    os.link(protected.home / ".ssh/id_ed25519", protected.home / "project/key")
    os.link(protected.home / "project/file", protected.home / "project/second-name")
    with pytest.raises(Forbidden):
        protected.files("project", secrets=True).read_any("events")
    with pytest.raises(Forbidden):
        protected.files("project").read_any("key")
    assert protected.files("project").read_any("second-name") == b"hello"
    listing = protected.files("project").read_any(".")
    assert isinstance(listing, DirectoryListing)
    assert [entry.name for entry in listing.entries] == ["file", "second-name"]


def test_a_hard_link_to_a_newly_created_protected_file_is_refused(protected: ProtectedHome) -> None:
    files = protected.files("project", secrets=True)
    for number in range(5):  # each within MAX_INDEX_AGE of the previous one
        (protected.data / f"token-{number}").write_text("secret")
        os.link(protected.data / f"token-{number}", protected.home / "project" / f"link-{number}")
        with pytest.raises(Forbidden):
            files.read_any(f"link-{number}")
        listing = files.read_any(".")
        assert isinstance(listing, DirectoryListing)
        assert [entry.name for entry in listing.entries] == ["file"]


def test_a_hard_link_is_refused_while_the_data_directory_cannot_be_read(
    protected: ProtectedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.link(protected.data / "token", protected.home / "project/link")

    def fail(path: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr("os.scandir", fail)
    with pytest.raises(Unavailable):
        protected.files("project").read_any("link")


def test_a_loop_of_links_at_a_secret_place_protects_no_other_file(protected: ProtectedHome) -> None:
    (protected.home / ".docker").symlink_to(".docker")
    assert protected.files("project").read_any("file") == b"hello"


def test_files_below_a_data_directory_that_is_given_as_a_link_are_recognised(
    protected: ProtectedHome,
) -> None:
    (protected.home / "link").symlink_to(protected.data)
    places = ProtectedPlaces([protected.home / "link"], [])
    assert places.is_below(str(protected.data / "bullpen.db-wal"))
    assert not places.is_below(str(protected.home / "project/file"))


def test_a_protected_place_is_not_listed(protected: ProtectedHome) -> None:
    (protected.data.parent / "other").mkdir()
    listing = protected.files().read_any(".local/share")
    assert isinstance(listing, DirectoryListing)
    assert [entry.name for entry in listing.entries] == ["other"]


def test_a_bind_mount_of_a_directory_of_the_data_is_refused(protected: ProtectedHome) -> None:
    mounted = protected.home / "project/mounted"
    mounted.mkdir()
    subprocess.run(["mount", "--bind", protected.data / "recordings", mounted], check=True)
    try:
        for path in ("mounted", "mounted/one", "mounted/one/events.jsonl"):
            with pytest.raises(Forbidden):
                protected.files("project").read_any(path)
        with pytest.raises(Forbidden):
            protected.files("project/mounted").read_any("one/events.jsonl")
    finally:
        subprocess.run(["umount", mounted], check=True)


@pytest.mark.parametrize("root", [".local/share/bullpen", ".local/share/bullpen/recordings"])
def test_the_data_directory_cannot_be_a_workspace(protected: ProtectedHome, root: str) -> None:
    with pytest.raises(Forbidden):
        protected.files(root).read_any(".")
    with pytest.raises(Forbidden):
        WorkspaceFiles(f"/proc/self/root{protected.home / root}", protected.boundary).read_any(".")


@pytest.mark.parametrize(
    ("path", "overlaps"),
    [
        (".local/share/bullpen", True),
        (".local/share/bullpen/recordings", True),
        (".local/share/bullpen/new/tree", True),
        ("link", True),
        ("link/new/tree", True),
        (".local", True),
        ("", True),
        (".local/new/tree", False),
        ("project", False),
        (".ssh", False),
    ],
)
def test_a_path_overlaps_with_the_data_directory_around_at_and_below_it(
    protected: ProtectedHome, path: str, overlaps: bool
) -> None:
    (protected.home / "link").symlink_to(protected.data)
    for given in (protected.data, protected.home / "link"):  # the data directory may be given as a link
        places = ProtectedPlaces([given], [protected.home])
        assert places.overlaps((protected.home / path).resolve()) is overlaps


def test_a_protected_file_is_not_copied_to_another_workspace(protected: ProtectedHome) -> None:
    (protected.home / "copy").mkdir()
    os.link(protected.data / "token", protected.home / "project/token")
    assert not copy_file(protected.files("project"), protected.files("copy"), "token")
    assert not copy_file(protected.files(), protected.files("copy"), ".local/share/bullpen/token")
    assert copy_file(protected.files("project"), protected.files("copy"), "file")
    assert os.listdir(protected.home / "copy") == ["file"]


# Exchanges a file of the workspace with a link to a protected file, until the program is killed.
SWAPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
top = os.open(sys.argv[1], os.O_PATH)
while True:
    libc.renameat2(top, b"swap", top, b"other", 2)
"""


@pytest.fixture(params=["symbolic link", "hard link", "link to a directory"])
def swapped(protected: ProtectedHome, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return a path that is alternately a file of the workspace and a link to the token."""
    project = protected.home / "project"
    path = "swap"
    match request.param:
        case "symbolic link":
            (project / "swap").write_text("hello")
            (project / "other").symlink_to("../.local/share/bullpen/token")
        case "hard link":
            (project / "swap").write_text("hello")
            os.link(protected.data / "token", project / "other")
        case _:
            (project / "swap").mkdir()
            (project / "swap/token").write_text("hello")
            (project / "other").symlink_to("../.local/share/bullpen")
            path = "swap/token"
    swapper = subprocess.Popen([sys.executable, "-c", SWAPPER, project])
    yield f"project/{path}"
    swapper.kill()
    swapper.wait()


def test_no_open_of_a_path_that_is_exchanged_constantly_serves_a_protected_file(
    protected: ProtectedHome, swapped: str, print_figures: Callable[[str], None]
) -> None:
    files = protected.files(secrets=True)
    results: Counter[bytes | None] = Counter()
    while results.total() < OPENS or len(results) < 2:
        try:
            results[files.read_bytes(swapped)] += 1
        except (Forbidden, NotFound):
            results[None] += 1
    assert set(results) == {b"hello", None}
    served = f"{results[b'hello']:,} served the file of the workspace, none a protected one"
    print_figures(f"{results.total():,} opens of {swapped} while it is exchanged: {served}")
