"""What the pages show to be typed or copied, piece by piece, and who tries it."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
QUOTES_CODE = {"map.md", "mutants.md"}  # docstrings and mutants, no examples
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name not in QUOTES_CODE),
]
FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MENTIONED = re.compile(
    r"`((?:[A-Z_]+=\S+ )*(?:--)?[a-z][\w.-]* [^`]+)`"
)  # words; the first may be a program or a flag
BIN = Path(sys.executable).parent  # where `bullpen`, `pip` and `uv` are
COMMENT = re.compile(r"\s{2,}# .*")


class Example(NamedTuple):
    """A line for a shell, a whole block of anything else, or a command in a sentence."""

    page: str
    kind: str
    text: str


def examples() -> Iterator[Example]:
    for path in PAGES:
        page, text = str(path.relative_to(ROOT)), path.read_text()
        for tag, body in FENCED.findall(text):
            for piece in lines(body) if tag == "sh" else [body]:
                yield Example(page, tag, piece)
        for words in MENTIONED.findall(FENCED.sub("", text)):
            yield Example(page, "sentence", " ".join(words.split()))


def lines(script: str) -> list[str]:
    """The commands of a script, each whole, without what is said of it."""
    whole = re.sub(r" *\\\n *", " ", script)
    return [COMMENT.sub("", line) for line in whole.splitlines()]


def tries(page: str, *begins: str) -> pytest.MarkDecorator:
    """Gives a test what the page shows: for each beginning the one example that has it."""
    return pytest.mark.parametrize("written", [[find(page, begin) for begin in begins]], ids=[page])


def find(page: str, begin: str) -> str:
    found = {each.text for each in examples() if each.page == page and each.text.startswith(begin)}
    assert len(found) == 1, f"{page} has {len(found)} examples that begin with {begin}"
    return found.pop()


def tried() -> Iterator[tuple[str, str]]:
    """Page and beginning of all that a test here says it tries."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name("tries"), args=arguments):
                    page, *begins = [ast.literal_eval(argument) for argument in arguments]
                    yield from ((page, begin) for begin in begins)


def typed(line: str, directory: Path, env: dict[str, str]) -> str:
    """What a shell with our programs shows for a line; it must not fail."""
    env = env | {"PATH": f"{BIN}:{env.get('PATH', os.defpath)}"}
    done = subprocess.run(
        ["bash", "-ec", line],
        cwd=directory,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    return done.stdout
