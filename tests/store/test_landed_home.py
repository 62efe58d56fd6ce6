"""A data directory of an earlier version can be read; its exports and `--json` outputs are unchanged.

`tests/golden/landed/` has a data directory that Bullpen wrote on 2026-11-18, with its exports and outputs: a
session of an agent with a plan, permissions, a question and a failed turn, a terminal, a cancelled session.
"""

import os
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.commands import Bullpen
from support.server import Server

GOLDEN = Path(__file__).parents[1] / "golden" / "landed"
AGENT, TERMINAL, CANCELLED = (
    "1c548a71-e410-4739-bbf9-1c8eb947ac40",
    "7022aa41-c97b-4105-864b-1b9e31f30081",
    "09bd4ad2-133c-4a5a-b121-712e7a255cee",
)
EXPORTS = {
    **{
        f"{session}.{name}": (session, name)
        for session in (AGENT, CANCELLED)
        for name in ("jsonl", "markdown")
    },
    "terminal.cast": (f"{TERMINAL}/terminal", "cast"),
}
OUTPUTS = {
    "ls.json": ("ls", "--all", "--json"),
    "show.json": ("show", AGENT, "--json"),
    "logs.json": ("logs", AGENT, "--json"),
    "usage.json": ("usage", "--json"),
    "search.json": ("search", "red", "--json"),
}


@pytest.fixture
async def landed(tmp_path: Path) -> AsyncIterator[Server]:
    with tarfile.open(GOLDEN / "home.tar.gz") as archive:
        archive.extractall(tmp_path, filter="tar")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    server = Server(tmp_path / "home", workspace)
    await server.start()
    yield server
    await server.close()


async def outputs(server: Server, folder: Path) -> dict[str, str]:
    """Return every export and every output of the data directory, by the name of its golden file."""
    bullpen = Bullpen(server.environment())
    written = {}
    for name, (target, kind) in EXPORTS.items():
        path = folder / name
        result = await bullpen("export", target, "--format", kind, "-o", str(path))
        assert result.code == 0, result.err
        written[name] = path.read_text()
    for name, command in OUTPUTS.items():
        result = await bullpen(*command)
        assert result.code == 0, result.err
        written[name] = result.out
    for path in sorted((server.home / "recordings").rglob("*.json*")):
        written[f"{path.parent.name}.{path.name}"] = path.read_text()
    return written


async def test_exports_and_outputs_of_a_landed_data_directory_are_unchanged(
    landed: Server, tmp_path: Path
) -> None:
    written = await outputs(landed, tmp_path)
    if os.environ.get("BULLPEN_WRITE_GOLDEN"):
        for name, text in written.items():
            (GOLDEN / name).write_text(text)
    golden = {path.name: path.read_text() for path in GOLDEN.iterdir() if path.suffix not in (".gz", ".xz")}
    assert written == golden
