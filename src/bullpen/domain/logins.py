"""Detect from files and variables whether a user is logged in to an agent; their content is not read."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from .errors import Invalid

_PATH = re.compile(r"(?:\$\{(?P<name>[A-Za-z_]\w*):-(?P<otherwise>(?:~|/)[^${}]*)\})?(?P<rest>[^${}]*)")

System = Literal["linux", "macos"]


class LoginStatus(StrEnum):
    """Whether a user is logged in to an agent, as far as the login signs show."""

    YES = "yes"
    NO = "no"  # none of the signs exists
    UNKNOWN = "unknown"  # no signs are defined, or a login may leave none
    NONE = "none"  # the agent needs no login


class LoginSigns(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Files and variables of which any one shows that a user is logged in."""

    needed: bool = True
    files: tuple[str, ...] = ()  # `~/…`, `/…`, or `${NAME:-~/…}/…` if a variable can change the directory
    env: tuple[str, ...] = ()
    hidden: tuple[System, ...] = ()  # systems where the login may be stored without a sign, as in a keyring


def check_login(login: LoginSigns, source: str) -> None:
    """Raise Invalid, naming `source`, if a login sign is not a valid path or variable name."""
    if not login.needed and (login.files or login.env or login.hidden):
        raise Invalid(f"{source}: login.needed is false, so there can be no signs of one")
    for place in login.files:
        check_path(place, f"{source}: login.files")
    for name in login.env:
        if not name or "=" in name or "\0" in name:
            raise Invalid(f"{source}: login.env has {name!r}, which cannot be the name of a variable")


def check_path(template: str, source: str) -> None:
    """Raise Invalid, naming `source`, if a path has none of the supported forms."""
    if "\0" in template or not _is_sign_path(template):
        raise Invalid(f"{source} has {template!r}; a file is ~/…, /… or ${{NAME:-~/…}}/…")


def sign_path(template: str, env: Mapping[str, str]) -> str | None:
    """Return the path of the login sign that `template` names, with variables from `env`.

    Return None if the template has no supported form, or the path is not absolute.
    """
    found = _PATH.fullmatch(template)
    if found is None:
        return None
    path = (env.get(found["name"]) or found["otherwise"]) + found["rest"] if found["name"] else template
    if path.startswith("~/"):
        path = f"{env.get('HOME') or '~'}{path[1:]}"
    return path if path.startswith("/") else None


def login_status(login: LoginSigns, has_sign: bool, system: str) -> LoginStatus:
    """Return the login status, given whether a sign exists. `system` is Python's name of the platform."""
    if not login.needed:
        return LoginStatus.NONE
    if has_sign:
        return LoginStatus.YES
    if not (login.files or login.env) or {"darwin": "macos"}.get(system, system) in login.hidden:
        return LoginStatus.UNKNOWN
    return LoginStatus.NO


def _is_sign_path(template: str) -> bool:
    """Return whether the path of a sign file has one of the supported forms."""
    found = _PATH.fullmatch(template)
    if found is None:
        return False
    return found["rest"].startswith("/") if found["name"] else template.startswith(("/", "~/"))
