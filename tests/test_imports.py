"""Imports go down only: a module imports from its own part and from the rows below, never sideways or up."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
PACKAGE = "bullpen"

ROWS = [
    ["main"],
    ["web", "cli"],
    ["sessions", "client"],
    ["workers", "agents"],
    ["log", "sandbox"],
    ["store", "git", "keeper"],
    ["wire"],
    ["config", "home", "logs"],  # above `domain`: invalid settings raise its errors
    ["setting_values"],
    ["domain", "clock", "threads", "server_path", "processes"],
    ["intervals"],
]
HEIGHT = {part: -row for row, parts in enumerate(ROWS) for part in parts}
MODULES = sorted((SRC / PACKAGE).rglob("*.py"))


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


def imported_names(source: str, module: str, *, is_package: bool) -> Iterator[str]:
    """Yield every module or name that is imported, also by imports inside functions."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source_module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{source_module}.{alias.name}" for alias in node.names)


def part_of(name: str) -> str | None:
    """Return the folder or file directly under the package; None for the package itself (its version)."""
    top, _, rest = name.partition(".")
    part = rest.partition(".")[0]
    return part if top == PACKAGE and part in HEIGHT else None


def upward_imports(source: str, module: str, *, is_package: bool = False) -> list[str]:
    here = part_of(module)
    if here is None:
        return []
    there = ((name, part_of(name)) for name in imported_names(source, module, is_package=is_package))
    return [
        f"{module} imports {name}"
        for name, part in there
        if part is not None and part != here and HEIGHT[part] >= HEIGHT[here]
    ]


def test_imports_point_down() -> None:
    found = {
        dotted(path): upward_imports(path.read_text(), dotted(path), is_package=path.name == "__init__.py")
        for path in MODULES
    }
    assert {name: imports for name, imports in found.items() if imports} == {}


def test_the_keeper_needs_only_the_standard_library_and_itself() -> None:
    own = f"{PACKAGE}.keeper."
    foreign = [
        (dotted(path), name)
        for path in (SRC / PACKAGE / "keeper").rglob("*.py")
        for name in imported_names(path.read_text(), dotted(path), is_package=path.name == "__init__.py")
        if not name.startswith(own) and name.partition(".")[0] not in sys.stdlib_module_names
    ]
    assert foreign == []


def test_no_private_name_of_another_package_is_imported_and_no_module_is_replaced() -> None:
    documented = {PACKAGE, *sys.stdlib_module_names}  # the module `_thread` too
    private = [
        (dotted(path), name)
        for path in MODULES
        for name in imported_names(path.read_text(), dotted(path), is_package=path.name == "__init__.py")
        if name.partition(".")[0] not in documented and "._" in name
    ]
    assert private == []
    assert [dotted(path) for path in MODULES if "sys.modules" in path.read_text()] == []


def test_every_part_of_the_package_has_its_row() -> None:
    parts = {path.relative_to(SRC / PACKAGE).parts[0].removesuffix(".py") for path in MODULES}
    assert parts - set(HEIGHT) <= {"__init__", "__main__"}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("bullpen.store.events", "from bullpen.log import log"),
        ("bullpen.store.events", "from ..git.git import Git"),
        ("bullpen.web.rest.sessions", "from ...cli import main"),
        ("bullpen.domain.ids", "def late():\n    from .. import config"),
        ("bullpen.workers.terminal", "import bullpen.sessions.session"),
    ],
)
def test_an_import_upwards_or_sideways_is_found(module: str, source: str) -> None:
    assert len(upward_imports(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("bullpen.web.rest.sessions", "from ...sessions.sessions import Sessions"),
        ("bullpen.web.app", "from .. import __version__"),
        ("bullpen.store.events", "from .tables import events"),
        ("bullpen.main", "from .web import app"),
    ],
)
def test_an_import_downwards_or_within_a_folder_is_allowed(module: str, source: str) -> None:
    assert upward_imports(source, module) == []
