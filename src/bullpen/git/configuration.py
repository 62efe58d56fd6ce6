"""Select the settings that git receives from the server, and write them as a git configuration file.

Git never reads the configuration of a repository or of the user: it reads a file that holds the settings
selected here. None of them names a program, so a new key of a newer git cannot run one either.
"""

import re
from collections.abc import Iterable

Setting = tuple[str, str | None]  # "section.subsection.name" as git spells it; None stands for "true"

# How git stores, compares and names what it writes.
_SHARED = frozenset(
    {
        "core.autocrlf",
        "core.checkstat",
        "core.eol",
        "core.filemode",
        "core.ignorecase",
        "core.logallrefupdates",
        "core.precomposeunicode",
        "core.sharedrepository",
        "core.symlinks",
        "core.trustctime",
        "user.email",
        "user.name",
    }
)
_OF_USER = _SHARED | {"core.attributesfile", "core.excludesfile"}
_OF_REPOSITORY = _SHARED | {
    "core.bare",
    "core.repositoryformatversion",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "index.sparse",
}
_WORKTREE_CONFIG = "extensions.worktreeconfig"

# Git must see every extension of the repository format: it refuses a format that it does not know.
# Two are left out: `worktreeConfig` makes git read another file, `partialClone` makes git start a fetch.
_EXTENSION = re.compile(r"extensions\.(?!worktreeconfig$|partialclone$)[^.]+")
# `git status` counts how far a branch is ahead of and behind its upstream. It needs no URL for that.
_UPSTREAM = re.compile(r"branch\..+\.(?:remote|merge)|remote\..+\.fetch", re.DOTALL)

# A new worktree has a work tree of its own.
_OF_ONE_WORKTREE = frozenset({"core.bare", "core.worktree"})


def parse_settings(listed: bytes) -> list[Setting]:
    """Return the settings that `git config --null --list` has printed."""
    entries = listed.decode("utf-8", "surrogateescape").split("\0")[:-1]
    parts = (entry.partition("\n") for entry in entries)
    return [(key, value if separator else None) for key, separator, value in parts]


def select_of_user(settings: Iterable[Setting]) -> list[Setting]:
    """Return the settings of the user's own configuration that git receives."""
    return [each for each in settings if each[0] in _OF_USER]


def select_of_repository(settings: Iterable[Setting]) -> list[Setting]:
    """Return the settings of a repository's configuration that git receives."""
    return [
        each
        for each in settings
        if each[0] in _OF_REPOSITORY or _EXTENSION.fullmatch(each[0]) or _UPSTREAM.fullmatch(each[0])
    ]


def select_of_new_worktree(settings: Iterable[Setting]) -> list[Setting]:
    """Return the settings of a `config.worktree` that `git worktree add` copies to a new worktree."""
    return [each for each in settings if each[0] not in _OF_ONE_WORKTREE]


def has_worktree_config(settings: Iterable[Setting]) -> bool:
    """Return whether each worktree of this repository has a configuration file of its own."""
    values = [value for key, value in settings if key == _WORKTREE_CONFIG]
    return bool(values) and (values[-1] is None or values[-1].lower() in ("true", "yes", "on", "1"))


def render(settings: Iterable[Setting]) -> bytes:
    """Return a configuration file with these settings, in this order."""
    return "".join(map(_render_one, settings)).encode("utf-8", "surrogateescape")


def _render_one(setting: Setting) -> str:
    """Return one setting in the syntax of a git configuration file."""
    key, value = setting
    section, _, rest = key.partition(".")
    subsection, separator, name = rest.rpartition(".")
    header = f'[{section} "{_escape(subsection)}"]' if separator else f"[{section}]"
    return f"{header}\n\t{name}\n" if value is None else f'{header}\n\t{name} = "{_escape_value(value)}"\n'


def _escape(text: str) -> str:
    """Return a text with its backslashes and quotes escaped by a backslash."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _escape_value(text: str) -> str:
    """Return a value as a quoted value of a git configuration file contains it."""
    return _escape(text).replace("\n", "\\n").replace("\t", "\\t").replace("\b", "\\b")
