"""The definition of an agent: how to start it, what Bullpen offers it, how it deviates from the protocol."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from .errors import Invalid
from .ids import is_safe_id
from .logins import LoginSigns, check_login, check_path
from .sandbox import LEVELS, SandboxLevel
from .screen_patterns import ScreenPatterns, TypingKeys, check_keys, check_signs

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class OfferedCapabilities(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The capabilities that Bullpen announces to the agent: access to workspace files, and terminals."""

    fs: bool = True
    terminal: bool = True


class AgentQuirks(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The ways in which an agent deviates from the Agent Client Protocol."""

    mode_text: str | None = None  # regular expression: matching agent text sets the mode to group 1
    missing_file: Literal["error", "empty"] = "error"  # the answer to reading a missing file
    load_after: int = 0  # seconds; the agent destroys a session that is loaded sooner after its creation
    late_history: bool = False  # repeats the old conversation after its answer to session/load
    ends_on_eof: bool = True  # whether the process exits when its input ends


class AgentDefinition(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Everything Bullpen knows about one kind of agent.

    In a command (a list of arguments), `{sessionId}` stands for the agent's session and `{prompt}` for a
    text. `signs` and `keys` are for agents that have only a terminal (kind `pty`).
    """

    id: str
    name: str
    kind: Literal["acp", "pty"]
    command: tuple[str, ...]
    env: dict[str, str] = {}
    pass_env: tuple[str, ...] = ()
    offer: OfferedCapabilities = OfferedCapabilities()
    description: str = ""
    install: str = ""  # the shell command that installs the agent
    auth: dict[str, str] = {}  # environment variable: the authentication method to use if it is set
    login_command: tuple[str, ...] = ()
    login: LoginSigns = LoginSigns()
    continue_command: tuple[str, ...] = ()
    title_command: tuple[str, ...] = ()
    mcp_servers: tuple[dict[str, Any], ...] = ()
    state: tuple[str, ...] = ()  # paths that the agent writes beside its workspace; a directory ends with `/`
    sandbox: SandboxLevel | None = None  # the least sandbox level of this agent
    restart: bool = False  # whether Bullpen restarts the agent after a crash
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
    """Return the definition in untrusted `data`, or raise Invalid with the mistake and the nearest name.

    `source` names the file or request in the error message.
    """
    _check_names(data, AgentDefinition, source)
    for part, shape in _PARTS.items():
        if isinstance(inner := data.get(part), Mapping):
            _check_names(inner, shape, f"{part} in {source}")
    _check_choice(data.get("kind"), ("acp", "pty"), f"kind in {source}")
    _check_choice(data.get("sandbox"), LEVELS, f"sandbox in {source}")
    try:
        definition = msgspec.convert(dict(data), AgentDefinition)
    except msgspec.ValidationError as error:
        raise Invalid(f"{source}: {str(error)[:1].lower()}{str(error)[1:]}") from None
    _check_values(definition, source)
    return definition


def fill_placeholders(command: Iterable[str], **values: str) -> tuple[str, ...]:
    """Return the command with each `{name}` replaced by its value. Unknown names stay as they are."""
    return tuple(
        _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), argument) for argument in command
    )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the known word nearest to a wrong one, or all known words."""
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"


def _check_names(data: Mapping[str, Any], shape: type[Struct], source: str) -> None:
    """Raise Invalid if `data` has a field that `shape` does not have."""
    known = [field.encode_name for field in msgspec.structs.fields(shape)]
    for name in data:
        if name not in known:
            raise Invalid(f"{source} has an unknown setting {name}{did_you_mean(str(name), known)}")


def _check_choice(value: Any, choices: tuple[str, ...], place: str) -> None:
    """Raise Invalid if a text is not one of the choices; other types are checked elsewhere."""
    if isinstance(value, str) and value not in choices:
        raise Invalid(f"{place} is {value}{did_you_mean(value, choices)}")


def _check_values(definition: AgentDefinition, source: str) -> None:
    """Raise Invalid if a value of the definition is invalid although its type is right."""
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
    for path in definition.state:
        check_path(path, f"{source}: state")
    check_signs(definition.signs, source)
    check_keys(definition.keys, source)
    if any("\0" in text for text in [*definition.command, *definition.env.values()]):
        raise Invalid(f"{source}: a command or a variable cannot have a NUL in it")


def _check_pattern(pattern: str, source: str) -> None:
    """Raise Invalid if `modeText` is not a regular expression with a group."""
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise Invalid(f"{source}: modeText is not a regular expression: {error}") from None
    if groups < 1:
        raise Invalid(f"{source}: modeText needs a group that is the mode")
