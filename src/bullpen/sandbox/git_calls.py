"""Run the server's own calls of git in a sandbox, which shows git nothing of the user but its repository."""

from collections.abc import Callable, Mapping, Sequence

from ..config import Config
from ..git.command import GitAccess
from ..server_path import SERVER_PATH
from .bubblewrap import confined_git_command
from .command import MECHANISMS
from .installations import program_roots
from .machine import existing_paths
from .profile import MachinePaths, plan_git_profile


class GitSandbox:
    """The sandbox of the calls of git of one server. Without bubblewrap, git runs as the server does."""

    def __init__(self, config: Config, machine: Callable[[Mapping[str, str]], MachinePaths]) -> None:
        """`machine` returns the paths of this machine for an environment."""
        self._is_open = config.sandbox == "open"
        self._machine = machine

    async def wrap(self, argv: Sequence[str], access: GitAccess) -> Sequence[str]:
        """Return the command that runs git with this access."""
        programs = (await MECHANISMS.find()).programs
        if self._is_open or programs is None:
            return argv
        env = {"PATH": str(SERVER_PATH)}
        machine = self._machine(env)
        installed = program_roots(argv[0], env, machine.homes)
        profile = plan_git_profile(
            machine,
            existing_paths([*installed, *access.read]),
            existing_paths(access.write),
            has_network=access.has_network,
        )
        return confined_git_command(programs.bwrap, profile, argv)
