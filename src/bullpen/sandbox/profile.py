"""Plan what a run may read, write and reach. This is a pure function: it reads no file and starts nothing."""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from ..domain.sandbox import SandboxLevel

NOTE_VARIABLE = "BULLPEN_SANDBOX_NOTE"
TEMPORARY_VARIABLES = ("TMPDIR", "TMP", "TEMP")
PROXY_PORT = 3128  # in the network of a sealed run
PROXY_DIRECTORY = "/run/bullpen-proxy"  # in a sealed run: the address of a socket must be short

Access = Literal["hidden", "masked", "read", "write"]


class Mount(Struct, frozen=True):
    """The access to a path and what is below it, except where another mount lies deeper.

    `hidden` is an empty directory, `masked` an empty file. `source` is the path that is shown there, if it
    is another one.
    """

    path: str
    access: Access
    source: str | None = None


class Profile(Struct, frozen=True, kw_only=True):
    """What a run may read, write and reach. Paths without a mount are readable, and not writable."""

    level: SandboxLevel
    session: str = ""  # whose limits apply
    workspace: str = ""
    mounts: tuple[Mount, ...] = ()
    has_network: bool = True
    proxy: str | None = None  # the directory of the socket of the proxy, if there is one
    variables: tuple[tuple[str, str], ...] = ()  # set in the environment of the run
    shared: tuple[str, ...] = ()  # what is mounted in directories that other runs write too


OPEN = Profile(level="open")


class MachinePaths(Struct, frozen=True, kw_only=True):
    """The paths of this machine that matter to all runs. All of them exist and have no links in them."""

    homes: tuple[str, ...] = ()
    private: tuple[str, ...] = ()  # hidden directories: sockets, temporary files, homes, workspace roots
    own: tuple[str, ...] = ()  # directories and files of Bullpen
    secrets: tuple[str, ...] = ()  # directories and files with credentials of the user
    files: frozenset[str] = frozenset()  # which of `own` and `secrets` are files
    toolchains: tuple[str, ...] = ()  # readable
    caches: tuple[str, ...] = ()  # writable
    private_cache: str | None = None  # shown as ~/.cache, so that no run writes what shells of the user read
    empty: str = "/dev/null"  # the empty file that is shown in place of a masked one


class GitPaths(Struct, frozen=True, kw_only=True):
    """The paths of a work tree that git writes, and those in them that the run must not change."""

    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()  # directories that do not exist, and must not be made
    masked: tuple[str, ...] = ()  # files that must stay empty


class RunPaths(Struct, frozen=True, kw_only=True):
    """The paths that matter to one run."""

    workspace: str
    session: str = ""
    temporary: str | None = None  # shown as /tmp and /var/tmp
    state: tuple[str, ...] = ()  # of the agent: writable
    programs: tuple[str, ...] = ()  # where the agent is installed: readable
    shown: tuple[str, ...] = ()  # readable files of Bullpen: the images of the session
    granted: tuple[Mount, ...] = ()  # what the user has allowed
    git: GitPaths = GitPaths()


_NO_GC = (("gc.auto", "0"), ("maintenance.auto", "false"))  # it fails on what belongs to other worktrees


def plan_profile(
    level: SandboxLevel, machine: MachinePaths, run: RunPaths, proxy: str | None = None
) -> Profile:
    """Return the profile of a run. Later mounts of the same path replace earlier ones."""
    if level == "open":
        return OPEN
    writable = (*machine.caches, *run.state, run.workspace)
    mounts = [
        *(Mount(path, "hidden") for path in machine.private if not _lies_in(path, (run.workspace,))),
        *(Mount(path, "hidden") for path in machine.homes if path != run.workspace),
        *(Mount(path, "read") for path in _outside((*machine.toolchains, *run.programs), writable)),
        *_private_caches(machine, run),
        *(Mount(path, "write") for path in machine.caches),
        *(_denied(path, machine) for path in machine.secrets if not _lies_in(run.workspace, (path,))),
        *(Mount(path, "write") for path in run.state),
        *run.granted,
        Mount(run.workspace, "write"),
        *_git_mounts(run.git, machine.empty),
        *(_denied(path, machine) for path in machine.own),
    ]
    own = tuple(path for path in machine.own if path not in machine.files)
    mounts = [
        each
        for each in mounts
        if not _is_state_in_secret(each, run, machine)
        and (each.access in ("hidden", "masked") or not _lies_in(each.path, own))
    ]
    mounts += [Mount(path, "read") for path in run.shown]
    if run.temporary is not None:
        mounts += [Mount(path, "write", run.temporary) for path in ("/tmp", "/var/tmp")]
    sealed = level == "sealed"
    if sealed and proxy is not None:
        mounts.append(Mount(PROXY_DIRECTORY, "read", proxy))
    ordered, written = _ordered(mounts), (run.workspace, *run.git.writable)
    return Profile(
        level=level,
        session=run.session,
        workspace=run.workspace,
        mounts=ordered,
        shared=tuple(each.path for each in ordered if _is_in_shared(each, written)),
        has_network=not sealed,
        proxy=proxy if sealed else None,
        variables=(
            *_git_variables(),
            *_temporary_variables(run),
            *(_proxy_variables() if sealed and proxy else ()),
            (NOTE_VARIABLE, _note(level, (*run.state, run.workspace))),
        ),
    )


def _private_caches(machine: MachinePaths, run: RunPaths) -> list[Mount]:
    """Return the mounts that show another directory as ~/.cache, unless the home is in the workspace."""
    if machine.private_cache is None:
        return []
    homes = _outside(machine.homes, (run.workspace,))
    return [Mount(f"{home}/.cache", "write", machine.private_cache) for home in homes]


def plan_git_profile(
    machine: MachinePaths, read: Iterable[str], write: Iterable[str], *, has_network: bool
) -> Profile:
    """Return the profile of a call of git by the server: it sees these paths and nothing else of the user."""
    read, write = tuple(read), tuple(write)
    hidden = (*machine.private, *machine.homes)
    mounts = [
        *(Mount(path, "hidden") for path in _outside(hidden, (*read, *write))),
        *(_denied(path, machine) for path in (*_outside(machine.secrets, (*read, *write)), *machine.own)),
        *(Mount(path, "read") for path in read),
        *(Mount(path, "write") for path in write),
    ]
    return Profile(level="sealed", mounts=_ordered(mounts), has_network=has_network)


def _git_mounts(git: GitPaths, empty: str) -> list[Mount]:
    """Return the mounts that let git work but protect its configuration and other worktrees."""
    return [
        *(Mount(path, "write") for path in git.writable),
        *(Mount(path, "read") for path in git.read_only),
        *(Mount(path, "hidden") for path in git.absent),
        *(Mount(path, "masked", empty) for path in git.masked),
    ]


def _git_variables() -> tuple[tuple[str, str], ...]:
    """Return the variables that turn off the automatic garbage collection of git."""
    named = [
        pair
        for number, (key, value) in enumerate(_NO_GC)
        for pair in ((f"GIT_CONFIG_KEY_{number}", key), (f"GIT_CONFIG_VALUE_{number}", value))
    ]
    return (("GIT_CONFIG_COUNT", str(len(_NO_GC))), *named)


def _temporary_variables(run: RunPaths) -> list[tuple[str, str]]:
    """Return the variables that name /tmp; the run may not see the directory that the user has set."""
    return [(name, "/tmp") for name in TEMPORARY_VARIABLES] if run.temporary is not None else []


def _note(level: SandboxLevel, writable: Iterable[str]) -> str:
    """Return what an agent is told: what it may write, and how the user can allow more."""
    network = "only allowed hosts can be reached; " if level == "sealed" else ""
    paths = ", ".join(dict.fromkeys(writable))
    return (
        f"This program runs in a sandbox ({level}). It can write {paths}, caches and /tmp; "
        f"{network}the user can allow more with: bullpen sandbox allow <host or path>"
    )


def _proxy_variables() -> list[tuple[str, str]]:
    """Return the variables by which programs find the proxy."""
    url = f"http://127.0.0.1:{PROXY_PORT}"
    named = {"HTTP_PROXY": url, "HTTPS_PROXY": url, "ALL_PROXY": url, "NO_PROXY": "localhost,127.0.0.1,::1"}
    return [(each, value) for name, value in named.items() for each in (name, name.lower())]


def _denied(path: str, machine: MachinePaths) -> Mount:
    """Return the mount that hides a directory or a file."""
    return Mount(path, "masked", machine.empty) if path in machine.files else Mount(path, "hidden")


def _is_in_shared(mount: Mount, written: Iterable[str]) -> bool:
    """Return whether a mount shows what lies in a directory that other runs may write at the same time."""
    return mount.access in ("read", "write") and mount.source is None and _lies_in(mount.path, written)


def _is_state_in_secret(mount: Mount, run: RunPaths, machine: MachinePaths) -> bool:
    """Return whether the mount hides a credential that belongs to the state of the run's agent."""
    return (
        mount.access in ("hidden", "masked")
        and mount.path in machine.secrets
        and _lies_in(mount.path, run.state)
    )


def _ordered(mounts: Iterable[Mount]) -> tuple[Mount, ...]:
    """Return the last mount of each path, outer paths first, without those that change nothing."""
    last = {mount.path: mount for mount in mounts}
    kept: dict[str, Mount] = {}
    for path in sorted(last, key=lambda path: PurePosixPath(path).parts):
        above = next((kept[str(each)] for each in PurePosixPath(path).parents if str(each) in kept), None)
        if not _changes_nothing(last[path], above):
            kept[path] = last[path]
    return tuple(_with_pins(kept.values()))


def _with_pins(mounts: Iterable[Mount]) -> Iterator[Mount]:
    """Yield the mounts, and one for each directory between a writable mount and a restricted one in it.

    A run could rename such a directory, and make another one in its place. It cannot rename a mount point.
    """
    known: dict[str, Mount] = {}
    for mount in mounts:
        parents = [str(each) for each in PurePosixPath(mount.path).parents]
        above = next((known[each] for each in parents if each in known), None)
        # What is shown there from another place has no such directory.
        is_writable = above is not None and above.access == "write" and above.source is None
        if above is not None and is_writable and mount.access != "write":
            for between in reversed(parents[: parents.index(above.path)]):
                known[between] = Mount(between, "write")
                yield known[between]
        known[mount.path] = mount
        yield mount


def _changes_nothing(mount: Mount, above: Mount | None) -> bool:
    """Return whether a mount only repeats the access that the mount above it gives."""
    around = above.access if above else "read"
    if mount.access in ("hidden", "masked"):
        return around == "hidden"
    # A writable directory is mounted even so: the run cannot rename a mount point.
    return mount.access == "read" == around and mount.source is None


def _outside(paths: Iterable[str], tops: Iterable[str]) -> list[str]:
    """Return the paths that lie in none of the directories."""
    tops = tuple(tops)
    return [path for path in paths if not _lies_in(path, tops)]


def _lies_in(path: str, tops: Iterable[str]) -> bool:
    """Return whether a path is one of the directories or lies below one."""
    return any(path == top or path.startswith(f"{top.rstrip('/')}/") for top in tops)
