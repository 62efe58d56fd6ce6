"""Check all files of the repository: forbidden contents, docstrings, and the length of modules."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "src").rglob("*.py"))
TEST_MODULES = sorted((ROOT / "tests").rglob("test_*.py"))
PURGE = ROOT / "src/bullpen/store/purge.py"
MAX_LINES = 500

# Split, so that this file does not contain what it looks for.
REGISTRY_HOSTS = re.compile(
    "|".join(["registry\\.npm" + "js", "files\\.python" + "hosted", "pypi" + "\\.org"])
)
DOWNLOAD_ADDRESSES = re.compile('"resol' + 'ved":|--(?:extra-)?index' + '-url|registry *= *"?https?:')
MACHINE_PATHS = re.compile("(?<![\\w./-])/(?:wo" + "rk|ro" + "ot)/[\\w.]")

EVENTS_IN_SQL = re.compile(r"\b(?:UPDATE\s+|DELETE\s+FROM\s+)[\"'`]?events\b", re.IGNORECASE)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tracked_text_files() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    files = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    return [path for path in files if path.is_file() and b"\0" not in path.read_bytes()[:8192]]


def lines_matching(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{name_of(path)}:{number}: {line.strip()[:120]}"
        for path in paths
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


def changes_events(source: str) -> list[str]:
    """Return the expressions that build an UPDATE or DELETE of the events table, in SQL or SQLAlchemy."""
    return [ast.unparse(node)[:100] for node in ast.walk(ast.parse(source)) if _changes_events(node)]


def _changes_events(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return EVENTS_IN_SQL.search(node.value) is not None
    if not isinstance(node, ast.Call):
        return False
    match node.func:
        case ast.Name(id="update" | "delete") if node.args:
            return _is_events(node.args[0])
        case ast.Attribute(attr="update" | "delete", value=target) if _is_events(target):
            return True
        case ast.Attribute(attr="update" | "delete") if node.args:
            return _is_events(node.args[0])
    return False


def _is_events(node: ast.expr) -> bool:
    match node:
        case ast.Name(id="events" | "events_table") | ast.Attribute(attr="events" | "events_table"):
            return True
        case ast.Attribute(attr="c" | "columns" | "__table__", value=inner):
            return _is_events(inner)
    return False


def unrun_tests(source: str) -> list[str]:
    """Return the tests of a module that are fixtures, or that a later test with the same name replaces."""
    tests = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
    ]
    last = {test.name: test for test in tests}
    return [test.name for test in tests if last[test.name] is not test or _is_fixture(test)]


def _is_fixture(test: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = (ast.unparse(decorator).partition("(")[0] for decorator in test.decorator_list)
    return any(name.endswith("fixture") for name in names)


def test_an_event_is_never_changed_or_removed() -> None:
    found = {name_of(path): changes_events(path.read_text()) for path in MODULES if path != PURGE}
    assert {name: changes for name, changes in found.items() if changes} == {}


def test_events_are_deleted_only_with_their_whole_session() -> None:
    assert changes_events(PURGE.read_text()) == ["delete(events)"]


@pytest.mark.parametrize(
    "source",
    [
        "connection.execute(update(events).values(data=b''))",
        "connection.execute(sqlalchemy.delete(tables.events))",
        "tables.events.delete().where(True)",
        "text('update events set data = 1')",
        "f'DELETE FROM events WHERE seq > {n}'",
    ],
)
def test_a_statement_that_changes_events_is_found(source: str) -> None:
    assert changes_events(source) != []


def test_every_test_runs() -> None:
    found = {name_of(path): unrun_tests(path.read_text()) for path in TEST_MODULES}
    assert len(found) > 100
    assert {name: tests for name, tests in found.items() if tests} == {}


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.fixture\ndef test_a(): ...",
        "@pytest_asyncio.fixture(loop_scope='session')\nasync def test_a(): ...",
        "def test_a(): ...\nasync def test_a(): ...",
    ],
)
def test_a_test_that_never_runs_is_found(source: str) -> None:
    assert unrun_tests(source) == ["test_a"]


def test_every_module_has_a_docstring() -> None:
    sources = {name_of(path): path.read_text() for path in MODULES}
    assert [n for n, source in sources.items() if source and not ast.get_docstring(ast.parse(source))] == []


def test_no_module_has_more_than_500_lines() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


@pytest.mark.parametrize(
    "pattern", [REGISTRY_HOSTS, DOWNLOAD_ADDRESSES, MACHINE_PATHS], ids=["hosts", "addresses", "paths"]
)
def test_no_tracked_file_has_a_registry_address_or_a_path_of_one_machine(pattern: re.Pattern[str]) -> None:
    assert lines_matching(pattern, tracked_text_files()) == []
