"""Parse docs/protocol.md: the section of each route, and its examples."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
SECTION = re.compile(r"^### `(\w+) (/\S*)`\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
RULE = re.compile(r"^\*(\w+)(?: → (\d+))?(, with Idempotency-Key)?\*$", re.MULTILINE)
BLOCK = re.compile(r"^```json (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# The ids in the examples; a test replaces them with real ones.
SESSION = "4c0f1f0e-3a52-4a0e-9d0b-6a5f1b1d2c01"
WORKER = "9b7e2c44-5d0a-4b53-8f0e-1d2f3a4b5c02"
REPOSITORY = "1f6d3b9a-7c21-4e5d-a3b8-0c9d8e7f6a03"
TOKEN = "7a2b9c0d-1e2f-4a3b-8c4d-5e6f7a8b9c04"
CODE = "Zk3v0pQm1cX9rT5yW8aBdg"
HOME = "/home/ada"


class Section(NamedTuple):
    """The section of one route."""

    method: str
    path: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def rule(self) -> re.Match[str]:
        found = RULE.search(self.text)
        assert found, f"the section of {self.name} does not state its scope"
        return found

    def examples(self, kind: str) -> list[Any]:
        return list(examples(self.text, kind))


def examples(text: str, kind: str) -> Iterator[Any]:
    """Yield the JSON values in the blocks of a kind; a block may contain several."""
    rest = "".join(body for found, body in BLOCK.findall(text) if found == kind).strip()
    while rest:
        value, end = json.JSONDecoder().raw_decode(rest)
        yield value
        rest = rest[end:].lstrip()


SECTIONS = [Section(*found) for found in SECTION.findall(PAGE)]
REST = [section for section in SECTIONS if section.method != "WS"]
SOCKETS = {section.path: section for section in SECTIONS if section.method == "WS"}
