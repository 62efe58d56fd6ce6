"""Agent definitions as files: the ones that come with us, and the user's own, which win."""

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
    """The definitions there are, and a sentence for each file that is none."""

    definitions: Definitions
    problems: list[str]


def builtin() -> Definitions:
    """The definitions that come with Bullpen, by id."""
    return {definition.id: definition for definition in _ours()}


@cache
def _ours() -> tuple[AgentDefinition, ...]:
    """Read once: they change with an upgrade, and reading them takes longer than all else a page asks for."""
    return tuple(map(read_file, sorted(BUILTIN.glob("*.toml"))))


def load(directory: Path) -> LoadedDefinitions:
    """The built-in definitions and those in the user's directory; a broken file breaks only itself."""
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
    """One definition; its id is the name of its file unless it says another."""
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text())
    except OSError as error:
        raise explain(error) or Invalid(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} is not valid TOML: {error}") from None
    return read_definition({"id": path.stem, **data}, str(path))
