"""Read agent definitions from TOML files: the built-in ones, and the user's own, which override them."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..domain.agents import AgentDefinition, read_definition
from ..domain.errors import Invalid
from ..domain.failures import explain

BUILTIN = Path(__file__).parent / "builtin"

Definitions = dict[str, AgentDefinition]


class LoadedDefinitions(Struct, frozen=True):
    """The definitions that were read, and an error text for each file that is not valid."""

    definitions: Definitions
    problems: list[str]


def builtin() -> Definitions:
    """Return the definitions that come with Bullpen, by id."""
    return {definition.id: definition for definition in _read_builtin()}


@cache
def _read_builtin() -> tuple[AgentDefinition, ...]:
    """Read the built-in files once: reading them is slow, and they change only with an upgrade."""
    return tuple(map(read_file, sorted(BUILTIN.glob("*.toml"))))


def load(directory: Path) -> LoadedDefinitions:
    """Return the built-in definitions and those in the user's directory. Skip files that are not valid."""
    definitions, problems = builtin(), []
    for path in sorted(directory.glob("*.toml")):
        try:
            definition = read_file(path)
        except Invalid as error:
            problems.append(str(error))
        else:
            definitions[definition.id] = definition
    return LoadedDefinitions(definitions, problems)


def read_file(path: Path) -> AgentDefinition:
    """Return one definition, or raise Invalid. Its id is the name of its file unless it sets one."""
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text())
    except OSError as error:
        raise explain(error) or Invalid(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} is not valid TOML: {error}") from None
    return read_definition({"id": path.stem, **data}, str(path))
