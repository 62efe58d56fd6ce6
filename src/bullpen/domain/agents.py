"""An agent definition: how an agent is started, what it is offered, and how it differs from the rest."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from .errors import Invalid
from .ids import is_safe_id
from .logins import LoginSigns, check_login
from .signs import ScreenPatterns, TypingKeys, check_keys, check_signs

_NAME = re.compile(r"\{(\w+)\}")


class OfferedCapabilities(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What we do for the agent when it asks: files inside the workspace, terminals shown live."""

    fs: bool = True
    terminal: bool = True


class AgentQuirks(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How the agent differs from the protocol."""

    mode_text: str | None = None  # agent text that matches is a change of mode; group 1 is the mode
    missing_file: Literal["error", "empty"] = "error"  # how reading a file that is not there is answered
    load_after: int = 0  # seconds; loaded sooner after it was made, a session is destroyed
    late_history: bool = False  # repeats a loaded conversation only after it has said it is loaded
    ends_on_eof: bool = True  # whether it ends when its input does


class AgentDefinition(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Commands are argument lists. `{sessionId}` stands for the agent's session, `{prompt}` for a text.

    `signs` and `keys` are of those that only have a terminal.
    """

    id: str
    name: str
    kind: Literal["acp", "pty"]
    command: tuple[str, ...]
    env: dict[str, str] = {}
    pass_env: tuple[str, ...] = ()
    offer: OfferedCapabilities = OfferedCapabilities()
    description: str = ""
    install: str = ""  # what a person types to have it
    auth: dict[str, str] = {}  # a variable that is set: the method to authenticate with
    login_command: tuple[str, ...] = ()
    login: LoginSigns = LoginSigns()
    continue_command: tuple[str, ...] = ()
    title_command: tuple[str, ...] = ()
    mcp_servers: tuple[dict[str, Any], ...] = ()
    restart: bool = False  # whether it is started again by itself when it crashed
    quirks: AgentQuirks = AgentQuirks()
    signs: ScreenPatterns = ScreenPatterns()
    keys: TypingKeys = TypingKeys()


_PARTS: dict[str, type[Struct]] = {
    "login": LoginSigns,
    "offer": OfferedCapabilities,
    "quirks": AgentQuirks,
    "signs": ScreenPatterns,
    "keys": TypingKeys,
}


def read_definition(data: Mapping[str, Any], source: str) -> AgentDefinition:
    """The definition an untrusted object stands for; Invalid says what is wrong, where, and what is near."""
    _check_names(data, AgentDefinition, source)
    for part, shape in _PARTS.items():
        if isinstance(inner := data.get(part), Mapping):
            _check_names(inner, shape, f"{part} in {source}")
    _check_word(data.get("kind"), ("acp", "pty"), f"kind in {source}")
    try:
        definition = msgspec.convert(dict(data), AgentDefinition)
    except msgspec.ValidationError as error:
        raise Invalid(f"{source}: {str(error)[:1].lower()}{str(error)[1:]}") from None
    _check_values(definition, source)
    return definition


def fill(command: Iterable[str], **values: str) -> tuple[str, ...]:
    """A command with its `{names}` filled in; an argument stays one argument."""
    return tuple(_NAME.sub(lambda found: values.get(found[1], found[0]), each) for each in command)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence that says what the right word may be."""
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"


def _check_names(data: Mapping[str, Any], shape: type[Struct], source: str) -> None:
    known = [field.encode_name for field in msgspec.structs.fields(shape)]
    for name in data:
        if name not in known:
            raise Invalid(f"{source} has an unknown setting {name}{did_you_mean(str(name), known)}")


def _check_word(word: Any, known: tuple[str, ...], place: str) -> None:
    if isinstance(word, str) and word not in known:
        raise Invalid(f"{place} is {word}{did_you_mean(word, known)}")


def _check_values(definition: AgentDefinition, source: str) -> None:
    if not is_safe_id(definition.id):
        raise Invalid(f"{source}: an id has letters, digits, dots, dashes and underscores")
    if not definition.name.strip():
        raise Invalid(f"{source}: an agent needs a name")
    if not definition.command or not definition.command[0]:
        raise Invalid(f"{source}: an agent needs a command")
    for name in [*definition.env, *definition.pass_env]:
        if not name or "=" in name or "\0" in name:
            raise Invalid(f"{source}: {name!r} cannot be the name of a variable")
    if definition.quirks.mode_text is not None:
        _check_pattern(definition.quirks.mode_text, source)
    check_login(definition.login, source)
    check_signs(definition.signs, source)
    check_keys(definition.keys, source)
    if any("\0" in text for text in [*definition.command, *definition.env.values()]):
        raise Invalid(f"{source}: a command or a variable cannot have a NUL in it")


def _check_pattern(pattern: str, source: str) -> None:
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise Invalid(f"{source}: modeText is not a regular expression: {error}") from None
    if groups < 1:
        raise Invalid(f"{source}: modeText needs a group that is the mode")
