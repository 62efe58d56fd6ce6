"""Start the git program with an environment that Bullpen makes; other modules call `run_git` in run.py."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from ..domain.errors import RemoteFault
from ..domain.failures import explain
from ..processes import ProcessResult, run_process
from ..server_path import SERVER_PATH

TIMEOUT_SECONDS = 10.0
MAX_OUTPUT_BYTES = 16 << 20
_OF_SANDBOX = "bwrap: "  # what bubblewrap prints if it cannot start git


class GitAccess(Struct, frozen=True, kw_only=True):
    """The paths that one call of git reads and writes, besides the system, and whether it may connect."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    has_network: bool = False


class GitConfinement:
    """Confines the calls of git of this process; `wrap` returns the command that runs git in a sandbox."""

    def __init__(self) -> None:
        self.wrap: Callable[[Sequence[str], GitAccess], Awaitable[Sequence[str]]] | None = None

    async def command(self, argv: Sequence[str], access: GitAccess | None) -> Sequence[str]:
        """Return the command of a call. It is not confined without `access`, nor without a server."""
        return argv if access is None or self.wrap is None else await self.wrap(argv, access)


CONFINEMENT = GitConfinement()


async def start_git(
    verb: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    access: GitAccess | None,
    *,
    options: Sequence[str] = (),
    stdin: bytes = b"",
    timeout: float = TIMEOUT_SECONDS,
    limit: int = MAX_OUTPUT_BYTES,
    on_progress: Callable[[str], None] | None = None,
) -> ProcessResult:
    """Run `git <options> <verb> <arguments>`; raise RemoteFault if it cannot start or takes too long.

    Git inherits only PATH and HOME from the server. It reads no configuration of the system or the user. It
    runs in a sandbox with `access`, or without one if that is None.
    """
    argv = ["git", "--no-optional-locks", "--no-pager", *options, verb, *arguments]
    try:
        ended = await run_process(
            await CONFINEMENT.command(argv, access),
            env={**_environment(), **environment},
            cwd="/",  # git changes to the work tree itself and must not discover a repository here
            timeout=timeout,
            limit=limit,
            stdin=stdin,
            on_line=on_progress,
            own_session=access is None,  # only ssh might ask on the terminal, for the login of a jump host
        )
    except TimeoutError:
        raise RemoteFault(f"git {verb} did not finish within {timeout:g} s") from None
    except FileNotFoundError:
        raise RemoteFault("there is no git on this machine; install it") from None
    except (OSError, ValueError) as error:
        raise explain(error) or RemoteFault(f"git {verb} cannot be started: {error}") from None
    if ended.code and ended.errors.startswith(_OF_SANDBOX):
        raise RemoteFault(f"git {verb} cannot be started in its sandbox: {ended.errors.splitlines()[0]}")
    return ended


def _environment() -> dict[str, str]:
    """Return the environment of git: it reads no configuration and runs no helper program."""
    return {
        "PATH": str(SERVER_PATH),
        "HOME": os.environ.get("HOME", "/"),  # ~/.config/git/ignore is read, ~/.gitconfig is not
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "none",  # overrides every protocol.*.allow
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_PROGRESS_DELAY": "1",
    }
