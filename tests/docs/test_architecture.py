"""ARCHITECTURE.md has a map of the code, and the map is complete."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text()


def mapped() -> Iterator[str]:
    """The files of the map, each under the folder it stands in: two spaces are one step down."""
    tree = PAGE.split("```\nsrc/bullpen/\n", 1)[1].split("\n```", 1)[0]
    folders = ["src/bullpen"]
    for line in tree.splitlines():
        first, *others = line.split()
        del folders[(len(line) - len(line.lstrip())) // 2 :]
        if first.endswith("/"):
            folders.append(first.rstrip("/"))
        else:
            yield from ("/".join([*folders, name]) for name in [first, *others] if name.endswith(".py"))


def real() -> Iterator[str]:
    for path in (ROOT / "src" / "bullpen").rglob("*.py"):
        if path.name != "__init__.py":
            yield str(path.relative_to(ROOT))


def test_every_file_is_on_the_map_once_and_every_place_on_it_is_a_file() -> None:
    assert sorted(mapped()) == sorted(real())
