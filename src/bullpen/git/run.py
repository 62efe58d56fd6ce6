"""The one way to call git: nothing a repository or an agent inside it says makes it run a program.

Git does what a repository tells it: hooks, fsmonitor, filters, external diffs, helpers. So every call is an
argument list with all of that turned off (`OPTIONS`), a small environment, and directories that we know of.

    place = Place(git_dir=…, common_dir=…, work_tree=…)
    said = await run_git(place, "diff", "--numstat", "-z", refs=[base], paths=["src/a.py"])
    said.output                                                       # bytes, as git wrote them

What people or agents name goes into `refs` and `paths`, which stand behind `--end-of-options` and `--`,
never into the options.
"""

import os
from collections.abc import Callable, Sequence
from typing import NewType

from ..domain.errors import Conflict, RemoteFault
from .places import Place
from .process import Ended, marked, run_process

OPTIONS = (
    "--no-optional-locks",
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "diff.external="),
    *("-c", "log.showSignature=false"),
    *("-c", "gpg.program=/bin/false"),
    *("-c", "core.sshCommand=/bin/false"),
    *("-c", "credential.helper="),
    *("-c", "protocol.allow=never"),
    *("-c", "core.editor=/bin/false"),
    *("-c", "core.alternateRefsCommand="),
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "commit.gpgSign=false"),
)

_DIFF = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")

# The verbs there are, each with what keeps it from looking into submodules and from converting content.
VERBS: dict[str, tuple[str, ...]] = {
    "blame": ("--no-textconv",),
    "branch": (),
    "cat-file": (),
    "check-ignore": (),
    "config": (),
    "diff": _DIFF,
    "diff-files": _DIFF,
    "diff-index": _DIFF,
    "diff-tree": _DIFF,
    "for-each-ref": (),
    "log": _DIFF,
    "ls-files": (),
    "ls-tree": (),
    "merge-base": (),
    "mktree": (),
    "rev-list": (),
    "rev-parse": (),
    "show": _DIFF,
    "status": ("--ignore-submodules=all",),
    "symbolic-ref": (),
    "update-ref": (),
    "worktree": (),
}

# Those that read or write content, and so would convert it.
_CONVERTING = frozenset(
    {"blame", "check-ignore", "diff", "diff-files", "diff-index", "ls-files", "show", "status", "worktree"}
)

Filters = NewType("Filters", dict[str, str])  # made by `filter_overrides` alone

TIMEOUT = 10.0  # seconds
LIMIT = 16 << 20  # bytes of output
MOST_FILTERS = 500  # more would not fit into an environment


class GitFailed(RemoteFault):
    """Git ended with a code nobody expected."""

    def __init__(self, verb: str, ended: Ended) -> None:
        self.exit_code = ended.code
        self.stderr = ended.errors
        super().__init__(f"git {verb} failed: {_reason(ended)}")


async def run_git(
    place: Place,
    verb: str,
    *options: str,
    refs: Sequence[str] = (),
    paths: Sequence[str] | None = None,
    stdin: bytes = b"",
    timeout: float = TIMEOUT,
    limit: int = LIMIT,
    cut: bool = False,
    accept: Sequence[int] = (0,),
    on_progress: Callable[[str], None] | None = None,
    marker: str | None = None,
    filters: Filters | None = None,
) -> Ended:
    """Runs `git <verb> <options> --end-of-options <refs> -- <paths>` in a place.

    `options` are words of our own. `refs` and `paths` may come from anybody; paths are taken literally.
    An exit code that is not in `accept` is a GitFailed. Output beyond `limit` is a RemoteFault, unless `cut`
    says that the beginning is enough; the result tells whether it was cut. `on_progress` gets every line of
    stderr as it comes. Cancelling ends git and all it started. A `marker` lets `end_marked` do so
    after a kill of the server. `filters` are those of `filter_overrides`, when it was asked already.
    """
    if filters is None:
        filters = await filter_overrides(place, timeout) if verb in _CONVERTING else Filters({})
    words = [verb, *VERBS[verb], *options]
    if refs:
        words += ["--end-of-options", *refs]
    if paths is not None:
        words += ["--", *paths]
    ended = await _run(place, words, filters | marked(marker), stdin, timeout, limit, on_progress)
    if ended.cut:
        if cut:
            return ended
        raise RemoteFault(f"git {verb} said more than {limit} bytes")
    if ended.code not in accept:
        raise _failure(verb, ended)
    return ended


async def filter_overrides(place: Place, timeout: float = TIMEOUT) -> Filters:
    """Empty commands for every filter the config knows, as environment.

    Not `-c`: that splits at the first `=`, so a filter named `a=b` would stay what it is.
    """
    words = ["config", "--null", "--name-only", "--get-regexp", r"^filter\."]
    ended = await _run(place, words, {}, b"", timeout, LIMIT, None)
    if ended.code not in (0, 1):  # 1: there is none
        raise _failure("config", ended)
    keys = ended.output.decode("utf-8", "surrogateescape").split("\0")[:-1]
    names = sorted({key.removeprefix("filter.").rpartition(".")[0] for key in keys})
    if len(names) > MOST_FILTERS or ended.cut:
        raise RemoteFault(f"the config of {place.work_tree} has more filters than we can turn off")
    pairs = [
        (f"filter.{name}.{key}", value)
        for name in names
        for key, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    ]
    numbered = {f"GIT_CONFIG_KEY_{n}": key for n, (key, _) in enumerate(pairs)}
    numbered |= {f"GIT_CONFIG_VALUE_{n}": value for n, (_, value) in enumerate(pairs)}
    return Filters({"GIT_CONFIG_COUNT": str(len(pairs))} | numbered if pairs else {})


async def _run(
    place: Place,
    words: Sequence[str],
    variables: dict[str, str],
    stdin: bytes,
    timeout: float,
    limit: int,
    on_progress: Callable[[str], None] | None,
) -> Ended:
    where = (f"--git-dir={place.git_dir}", f"--work-tree={place.work_tree}")
    try:
        return await run_process(
            ["git", *OPTIONS, *where, *words],
            env=_environment(place) | variables,
            cwd="/",  # git goes to the work tree itself; nothing is looked for where we happen to be
            timeout=timeout,
            limit=limit,
            stdin=stdin,
            on_line=on_progress,
        )
    except TimeoutError:
        raise RemoteFault(f"git {words[0]} did not finish within {timeout:g} s") from None
    except (OSError, ValueError) as error:
        raise RemoteFault(f"git {words[0]} cannot be started: {error}") from None


def _environment(place: Place) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/"),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_PROGRESS_DELAY": "1",
        "GIT_COMMON_DIR": str(place.common_dir),  # else a file `commondir` says which config is read
    }


def _failure(verb: str, ended: Ended) -> Conflict | RemoteFault:
    if ended.code == 127:
        return RemoteFault("there is no git on this machine; install it")
    if ".lock': File exists" in ended.errors:
        lock = ended.errors.partition("Unable to create '")[2].partition("'")[0]
        return Conflict(f"{lock} is left of another git; wait for that git to end, or remove the file")
    return GitFailed(verb, ended)


def _reason(ended: Ended) -> str:
    """The line a person can do something with: the first that git calls fatal or an error."""
    lines = ended.errors.splitlines()
    marked = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    line = (marked or lines or [f"it ended with code {ended.code}"])[0]
    return line.removeprefix("fatal: ").removeprefix("error: ")[:500]
