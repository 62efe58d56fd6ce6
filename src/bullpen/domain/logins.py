"""By which signs a login to an agent is known; a sign is there or not, nobody reads it."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from .errors import Invalid

_PLACE = re.compile(r"(?:\$\{(?P<name>[A-Za-z_]\w*):-(?P<otherwise>(?:~|/)[^${}]*)\})?(?P<rest>[^${}]*)")

System = Literal["linux", "macos"]


class LoginStatus(StrEnum):
    """Whether somebody is logged in to an agent, as far as signs tell."""

    YES = "yes"
    NO = "no"  # none of the signs is there
    UNKNOWN = "unknown"  # no signs are known, or a login need not leave one
    NONE = "none"  # it needs no login


class LoginSigns(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Any one of these files or variables is a sign of a login."""

    needed: bool = True
    files: tuple[str, ...] = ()  # `~/…`, `/…`, or `${NAME:-~/…}/…` where a variable moves it
    env: tuple[str, ...] = ()
    hidden: tuple[System, ...] = ()  # where it may be kept out of sight: in a keyring, among settings


def check_login(login: LoginSigns, source: str) -> None:
    """Invalid says which sign makes no sense."""
    if not login.needed and (login.files or login.env or login.hidden):
        raise Invalid(f"{source}: login.needed is false, so there can be no signs of one")
    for place in login.files:
        if "\0" in place or not _is_place(place):
            raise Invalid(f"{source}: login.files has {place!r}; a file is ~/…, /… or ${{NAME:-~/…}}/…")
    for name in login.env:
        if not name or "=" in name or "\0" in name:
            raise Invalid(f"{source}: login.env has {name!r}, which cannot be the name of a variable")


def sign_path(place: str, env: Mapping[str, str]) -> str | None:
    """The path a file of signs stands for in an environment; None when that has no place for it."""
    found = _PLACE.fullmatch(place)
    if found is None:
        return None
    path = (env.get(found["name"]) or found["otherwise"]) + found["rest"] if found["name"] else place
    if path.startswith("~/"):
        path = f"{env.get('HOME') or '~'}{path[1:]}"
    return path if path.startswith("/") else None


def judge(login: LoginSigns, has_sign: bool, system: str) -> LoginStatus:
    """What signs come to on a system, by the name Python has for it."""
    if not login.needed:
        return LoginStatus.NONE
    if has_sign:
        return LoginStatus.YES
    if not (login.files or login.env) or {"darwin": "macos"}.get(system, system) in login.hidden:
        return LoginStatus.UNKNOWN
    return LoginStatus.NO


def _is_place(place: str) -> bool:
    found = _PLACE.fullmatch(place)
    if found is None:
        return False
    return found["rest"].startswith("/") if found["name"] else place.startswith(("/", "~/"))
