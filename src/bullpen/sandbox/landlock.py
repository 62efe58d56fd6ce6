"""Build the command line that runs a program under Landlock, the weaker mechanism."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ..domain.errors import Conflict
from ..server_path import SERVER_PATH
from .profile import TEMPORARY_VARIABLES, Mount, Profile

_LAUNCHER = Path(__file__).with_name("landlock_launcher.py")
_SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
_DROP = ("--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs")


def landlock_command(profile: Profile, argv: Sequence[str]) -> list[str]:
    """Return the command that runs `argv` restricted. Raise Conflict for what Landlock cannot do."""
    if not profile.has_network:
        raise Conflict("a sealed run needs bubblewrap: Landlock does not close the network")
    mounts = {_real_place(each): each.access for each in profile.mounts}
    variables = dict(profile.variables)
    if temporary := next(
        (each.source for each in profile.mounts if each.path == "/tmp" and each.source), None
    ):
        mounts["/tmp"] = mounts["/var/tmp"] = "hidden"
        variables |= dict.fromkeys(TEMPORARY_VARIABLES, temporary)
    for mount in profile.mounts:
        if mount.path.endswith("/.cache") and mount.source:
            variables["XDG_CACHE_HOME"] = mount.source
    order = json.dumps({"mounts": mounts, "variables": variables})
    return [*_without_capabilities(), sys.executable, "-I", str(_LAUNCHER), order, "--", *argv]


def _real_place(mount: Mount) -> str:
    """Return the path that the run uses: without mounts, a source is seen at its own path."""
    return mount.path if mount.source is None or mount.access == "masked" else mount.source


def _without_capabilities() -> list[str]:
    """Return the command prefix that drops the capabilities of root; other users have none.

    Raise Conflict if root has no `setpriv`.
    """
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv", path=f"{SERVER_PATH}:{_SYSTEM_PATH}")
    if setpriv is None:
        raise Conflict("the sandbox needs setpriv (of util-linux) when the server runs as root")
    return [setpriv, *_DROP]
