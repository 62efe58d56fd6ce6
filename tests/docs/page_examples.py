"""The commands and configurations that the pages show, and which of them a test uses."""

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
PAGES_WITHOUT_EXAMPLES = {"map.md", "mutants.md"}  # they quote docstrings and mutants
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name not in PAGES_WITHOUT_EXAMPLES),
]
FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Several words; the first may be a program or an option.
INLINE_COMMAND = re.compile(r"`((?:[A-Z_]+=\S+ )*(?:--)?[a-z][\w.-]* [^`]+)`")
BIN = Path(sys.executable).parent  # where `bullpen`, `pip` and `uv` are
COMMENT = re.compile(r"\s{2,}# .*")


class Example(NamedTuple):
    """A line of a shell script, a whole block of another kind, or a command in a sentence."""

    page: str
    kind: str
    text: str


def examples() -> Iterator[Example]:
    """Yield all examples of all pages."""
    for path in PAGES:
        page, text = str(path.relative_to(ROOT)), path.read_text()
        for tag, body in FENCED.findall(text):
            for piece in command_lines(body) if tag == "sh" else [body]:
                yield Example(page, tag, piece)
        for words in INLINE_COMMAND.findall(FENCED.sub("", text)):
            yield Example(page, "sentence", " ".join(words.split()))


def command_lines(script: str) -> list[str]:
    """Return the commands of a script: continuation lines are joined, comments are removed."""
    whole = re.sub(r" *\\\n *", " ", script)
    return [COMMENT.sub("", line) for line in whole.splitlines()]


def uses_examples(page: str, *prefixes: str) -> pytest.MarkDecorator:
    """Parametrize a test with examples of a page: for each prefix the one example that begins with it."""
    return pytest.mark.parametrize(
        "shown_examples", [[find_example(page, prefix) for prefix in prefixes]], ids=[page]
    )


def find_example(page: str, prefix: str) -> str:
    """Return the only example of a page that begins with the prefix."""
    found = {each.text for each in examples() if each.page == page and each.text.startswith(prefix)}
    assert len(found) == 1, f"{page} has {len(found)} examples that begin with {prefix}"
    return found.pop()


def used_examples() -> Iterator[tuple[str, str]]:
    """Yield the page and the prefix of each example that a test of this directory uses."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name("uses_examples"), args=arguments):
                    page, *prefixes = [ast.literal_eval(argument) for argument in arguments]
                    yield from ((page, prefix) for prefix in prefixes)


def run_line(line: str, directory: Path, env: dict[str, str]) -> str:
    """Run a line in a shell that finds the programs of this environment. Return its output."""
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
