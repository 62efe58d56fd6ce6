"""Names from outside: branches, revisions, worktrees; refused when git could read more into them."""

import re
import unicodedata

from ..domain.errors import Invalid

LONGEST = 200  # bytes; a component of a ref is a file name
MAIN = "main"  # the name of the repository's own work tree in every list

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)")
_FORBIDDEN_REVISION = re.compile(r"[\x00-\x20\x7f:?*\[\\]|\.\.")
_SLUG_WORDS = 6
_SLUG_LENGTH = 40


def check_branch(name: str) -> str:
    """The name, when git would take it for a branch and for nothing else."""
    _check_text("branch", name)
    wrong = _FORBIDDEN.search(name) or name.startswith(("-", "/", ".")) or name.endswith(("/", "."))
    if wrong or name in ("@", "HEAD") or name.startswith("refs/"):
        raise Invalid(f"{name!r} cannot be the name of a branch")
    return name


def check_revision(text: str) -> str:
    """A revision as a person writes one: a branch, a tag, a commit, or some steps before it."""
    _check_text("base", text)
    if _FORBIDDEN_REVISION.search(text) or text.startswith("-"):
        raise Invalid(f"{text!r} does not name a commit")
    return text


def check_name(name: str) -> str:
    """One segment of a path that git keeps as it is."""
    _check_text("name", name)
    if not _NAME.fullmatch(name) or ".." in name or name.endswith((".", ".lock")):
        raise Invalid(f"{name!r} cannot be the name of a worktree; use letters, digits, dots, _ and -")
    if name == MAIN:
        raise Invalid(f"{MAIN} is the repository's own directory; choose another name")
    return name


def slug(text: str) -> str:
    """A name made of the first words of a text; empty when it has none."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)[:_SLUG_WORDS]
    return "-".join(words)[:_SLUG_LENGTH].strip("-")


def _check_text(what: str, text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Invalid(f"the {what} is not valid text") from None
    if not 0 < size <= LONGEST:
        raise Invalid(f"the {what} has 1 to {LONGEST} bytes, not {size}")
