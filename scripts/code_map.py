"""Print docs/map.md, the list of all modules, from their docstrings: scripts/code_map.py > docs/map.md"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "bullpen"

HEAD = """# Map of the code

Generated from the module docstrings of `src/bullpen` by `scripts/code_map.py`; do not edit.
[ARCHITECTURE](../ARCHITECTURE.md) explains the folders.
"""


def main() -> None:
    sys.stdout.write(page())


def page() -> str:
    folders = sorted({path.parent for path in modules()})
    return HEAD + "".join(f"\n{section}\n" for folder in folders for section in _sections(folder))


def modules() -> list[Path]:
    """Return every module that has a docstring of its own; empty `__init__.py` files have none."""
    return sorted(path for path in SOURCES.rglob("*.py") if path.stat().st_size)


def _sections(folder: Path) -> Iterator[str]:
    rows = [f"| `{path.name}` | {first_sentence(path)} |" for path in modules() if path.parent == folder]
    title = "/".join(["bullpen", *folder.relative_to(SOURCES).parts])
    yield "\n".join([f"## {title}", "", "| module | responsibility |", "|---|---|", *rows])


def first_sentence(path: Path) -> str:
    """Return the first sentence of a module's docstring in one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return re.split(r"(?<=[a-z`)\]]\.) ", paragraph, maxsplit=1)[0].replace("|", "\\|")


if __name__ == "__main__":
    main()
