"""Check the names of branches, revisions and worktrees that clients send, before git gets them."""

import re
import unicodedata

from ..domain.errors import Invalid

MAX_NAME_BYTES = 200  # a component of a ref is a file name
MAIN = "main"  # the name of the repository's own work tree in every list

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)")
_FORBIDDEN_REVISION = re.compile(r"[\x00-\x20\x7f:?*\[\\]|\.\.")
_SLUG_WORDS = 6
_SLUG_LENGTH = 40


def check_branch(name: str) -> str:
    """Return the name if git accepts it as a branch and as nothing else, or raise Invalid."""
    _check_text("branch", name)
    wrong = _FORBIDDEN.search(name) or name.startswith(("-", "/", ".")) or name.endswith(("/", "."))
    if wrong or name in ("@", "HEAD") or name.startswith("refs/"):
        raise Invalid(f"{name!r} cannot be the name of a branch")
    return name


def check_revision(text: str) -> str:
    """Return the text if it can name a commit, such as a branch, a tag or `main~2`, or raise Invalid."""
    _check_text("base", text)
    if _FORBIDDEN_REVISION.search(text) or text.startswith("-"):
        raise Invalid(f"{text!r} does not name a commit")
    return text


def check_name(name: str) -> str:
    """Return the name if it can name a worktree, which is also a directory, or raise Invalid."""
    _check_text("name", name)
    if not _NAME.fullmatch(name) or ".." in name or name.endswith((".", ".lock")):
        raise Invalid(f"{name!r} cannot be the name of a worktree; use letters, digits, dots, _ and -")
    if name == MAIN:
        raise Invalid(f"{MAIN} is the repository's own directory; choose another name")
    return name


def slug(text: str) -> str:
    """Return a name made of the first words of a text, in lower case with hyphens; empty without words."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)[:_SLUG_WORDS]
    return "-".join(words)[:_SLUG_LENGTH].strip("-")


def _check_text(kind: str, text: str) -> None:
    """Raise Invalid if the text is empty, too long or not valid Unicode; `kind` names it in the error."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Invalid(f"the {kind} is not valid text") from None
    if not 0 < size <= MAX_NAME_BYTES:
        raise Invalid(f"the {kind} has 1 to {MAX_NAME_BYTES} bytes, not {size}")
