"""Limit what sandboxed runs use: by control groups where this process may make them, else by rlimits."""

import asyncio
import os
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import structlog
from msgspec import Struct

from ..domain.limits import ResourceLimits
from .cgroups import ControlGroups, RunGroup
from .process_tree import count_tasks
from .profile import Profile

log = structlog.get_logger()

_LAUNCHER = Path(__file__).with_name("limit_launcher.py")


class EnforcedLimit(Struct, frozen=True, kw_only=True, rename="camel"):
    """A limit, and what enforces it on this machine."""

    name: str
    value: int  # 0: no limit
    enforced_by: str


class RunLimits:
    """The limits of the sandboxed runs of one server."""

    def __init__(self, limits: ResourceLimits, groups: ControlGroups | None) -> None:
        self.values = limits
        self._groups = groups
        self._ended: set[RunGroup] = set()  # groups to remove

    @property
    def has_ended(self) -> bool:
        """Whether there are groups of ended runs to remove."""
        return bool(self._ended)

    def describe(self) -> list[EnforcedLimit]:
        """Return each limit, and what enforces it."""
        kernel = f"cgroup v{self._groups.version}" if self._groups else "server"
        by = {"memory": kernel, "processes": kernel, "disk": "server"}
        if self._groups is None and os.getuid() != 0:  # the kernel does not count the processes of root
            by["processes"] = "rlimit, server"
        values = {name: int(getattr(self.values, name)) for name in by}
        return [
            EnforcedLimit(name=name, value=values[name], enforced_by=by[name] if values[name] else "")
            for name in by
        ]

    async def begin(self, profile: Profile, run: str) -> RunGroup | None:
        """Make the group of a sandboxed run; None if it has no limits or cannot have a group."""
        if self._groups is None or not self._applies_to(profile):
            return None
        try:
            return await asyncio.to_thread(self._groups.begin, profile.session, run, self.values)
        except OSError as error:
            log.warning("a run has no control group", session=profile.session, run=run, reason=str(error))
            return None

    def command(self, profile: Profile, argv: Sequence[str], group: RunGroup | None) -> list[str]:
        """Return the command that runs `argv` within the limits."""
        if not self._applies_to(profile):
            return list(argv)
        files = map(str, group.process_files) if group else ()
        # The kernel counts all processes of the user, so the present ones are added.
        most = "" if group or not self.values.processes else str(self.values.processes + count_tasks())
        return [sys.executable, "-I", "-S", str(_LAUNCHER), most, *files, "--", *argv]

    @asynccontextmanager
    async def limited(self, profile: Profile, argv: Sequence[str]) -> AsyncIterator[list[str]]:
        """Yield the command that runs `argv` within the limits, for a command that no keeper runs."""
        group = await self.begin(profile, f"command.{uuid.uuid4()}")
        try:
            yield self.command(profile, argv, group)
        finally:
            if group is not None:
                self.forget(group)

    def find(self, run: str) -> RunGroup | None:
        """Return the group of a run that an earlier server has started."""
        return self._groups.find_run(run) if self._groups else None

    def forget(self, group: RunGroup) -> None:
        """Have the group of a run removed that has ended."""
        self._ended.add(group)

    def sweep(self) -> bool:
        """Remove the groups of runs that ended while no server ran; return whether no group remains."""
        return self._groups is None or self._groups.sweep()

    def remove_ended(self) -> None:
        """Remove the groups of runs that have ended, as far as they are empty."""
        for group in tuple(self._ended):
            if self._groups is None or self._groups.remove(group):
                self._ended.discard(group)

    def _applies_to(self, profile: Profile) -> bool:
        """Return whether a run has limits that are enforced at its start."""
        return profile.level != "open" and bool(self.values.memory or self.values.processes)
