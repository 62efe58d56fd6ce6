"""Build the command line of bubblewrap from a profile."""

import os
import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from .profile import Mount, Profile

# A signal of the terminal, or one to the process group, also reaches bubblewrap, which would end before the
# program. It therefore ignores these signals, and the program gets them back.
_GROUP_SIGNALS = "HUP,INT,QUIT,TERM"
# The settings of the kernel; root owns them and needs no capability to change them. For other users, these
# mounts would only prevent that a program in the sandbox makes a sandbox with a new /proc.
_KERNEL_SETTINGS = tuple(f"/proc/{name}" for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi"))
# Git needs no other devices and nothing about processes; each mount takes time. It names files by urandom.
_DEVICES_OF_GIT = ("/dev/null", "/dev/urandom")
_REPLACED = "echo 'bullpen: the workspace was changed while this program started' >&2; exit 126"
_OPTIONS = {"masked": "--ro-bind", "read": "--ro-bind", "write": "--bind"}


MAX_SCRATCH_BYTES = 256 << 20  # of each directory that is empty at first; it takes memory


class BubblewrapPrograms(Struct, frozen=True):
    """The paths of bwrap, of env from coreutils 8.31 or newer, and of stat; and the command of a shell."""

    bwrap: str
    env: str
    stat: str
    shell: tuple[str, ...]


def bubblewrap_command(
    programs: BubblewrapPrograms,
    profile: Profile,
    argv: Sequence[str],
    cwd: str,
    inodes: Mapping[str, str] = MappingProxyType({}),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Return the command that runs `argv` in the sandbox. It exits with 128 + n if signal n ended `argv`.

    It exits with 126 if one of the paths in `inodes` has another inode in the sandbox: bubblewrap follows
    links, and another run may have made one meanwhile. `variables` have no effect on this check.
    """
    env = programs.env
    return [
        env,
        f"--ignore-signal={_GROUP_SIGNALS}",
        programs.bwrap,
        *bubblewrap_arguments(profile),
        "--chdir",
        cwd,
        "--",
        *_check_inodes(programs, inodes),
        env,
        f"--default-signal={_GROUP_SIGNALS}",
        *(f"{name}={value}" for name, value in variables.items()),
        *argv,
    ]


def _check_inodes(programs: BubblewrapPrograms, inodes: Mapping[str, str]) -> list[str]:
    """Return the command prefix that ends unless each path has its device and inode."""
    if not inodes:
        return []
    found = f'"$({programs.stat} -c %d:%i -- {shlex.join(inodes)})"'
    expected = shlex.quote("\n".join(inodes.values()))
    script = f'[ {found} = {expected} ] || {{ {_REPLACED}; }}; exec "$@"'
    return [*programs.shell, "-c", script, "sh"]


def confined_git_command(bwrap: str, profile: Profile, argv: Sequence[str]) -> list[str]:
    """Return the command that runs git for the server. It needs no signal but KILL, which ends bubblewrap."""
    # The files of a workspace may belong to another user than root, who then needs this one capability.
    more = ("--cap-add", "CAP_DAC_OVERRIDE") if os.geteuid() == 0 else ()
    devices = [each for path in _DEVICES_OF_GIT for each in ("--dev-bind", path, path)]
    options = _arguments(profile, ("--tmpfs", "/dev", *devices, "--tmpfs", "/proc"))
    return [bwrap, *options, *more, "--chdir", "/", "--", *argv]


def bubblewrap_arguments(profile: Profile) -> list[str]:
    """Return the options of bubblewrap for the profile of a run."""
    paths = _KERNEL_SETTINGS if os.geteuid() == 0 else ()
    settings = [each for path in paths for each in ("--ro-bind-try", path, path)]
    return _arguments(profile, ("--dev", "/dev", "--proc", "/proc", *settings))


def _arguments(profile: Profile, system: Sequence[str]) -> list[str]:
    """Return the options of bubblewrap for a profile; `system` are those for /dev and /proc."""
    arguments = ["--ro-bind", "/", "/", *system, "--unshare-pid", "--unshare-ipc"]
    if not profile.has_network:
        arguments.append("--unshare-net")
    arguments += ["--cap-drop", "ALL"]  # as root it keeps all capabilities otherwise
    for mount in profile.mounts:
        arguments += _mount_arguments(mount)
    for name, value in profile.variables:
        arguments += ["--setenv", name, value]
    return arguments


def _mount_arguments(mount: Mount) -> list[str]:
    """Return the options for one mount."""
    if mount.access == "hidden":
        return ["--perms", "0755", "--size", str(MAX_SCRATCH_BYTES), "--tmpfs", mount.path]
    return [_OPTIONS[mount.access], mount.source or mount.path, mount.path]
