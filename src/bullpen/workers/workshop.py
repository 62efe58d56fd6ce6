"""What every worker works with: children, screens, settings of the house."""

import os
from collections.abc import Mapping

from ..config import Config
from ..keeper.marker import MARKER
from ..log.recording import Recording
from .children import Children
from .screens import Screens

# What a child may inherit. Never our own secrets, nor the marks of an agent that runs us.
INHERITED = (
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "SSH_AUTH_SOCK",
    "DISPLAY",
)


class Workshop:
    """Shared by all workers of one server."""

    def __init__(self, config: Config, children: Children, screens: Screens) -> None:
        self.config = config
        self.children = children
        self.screens = screens

    def environment(self, worker_id: str, run: int, more: Mapping[str, str]) -> dict[str, str]:
        """The environment of a child: the house's harmless part, our marker, and what the worker adds."""
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        kept |= {name: value for name, value in os.environ.items() if name.startswith("LC_")}
        return kept | {MARKER: self.children.marker(worker_id, run)} | dict(more)

    def recording(self, worker_id: str, run: int) -> Recording:
        """The recording of a run, living or not."""
        child = self.children.get(worker_id, run)
        return child.recording if child else Recording(self.children.spool(worker_id, run))

    async def forget(self, worker_id: str) -> None:
        """Removes what a purged worker left on the disk."""
        await self.children.forget_spool(worker_id)
        await self.screens.forget(worker_id)
