"""Fixtures and settings for all tests: a running server, a workspace, and limits of hypothesis."""

import gc
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support.server import Server
from support.shared_server import SharedServer, has_own_server, server_of_test, shared_server
from support.tls import Certificate, TlsServer

# Sandboxed runs of the tests execute what is in this tree.
os.environ["BULLPEN_SANDBOX_TOOLCHAINS"] = str(Path(__file__).parents[1])

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
FULL_SECONDS = 4 * 3600

# No deadline per example: on a busy machine any example may take long.
settings.register_profile(
    "no_deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=not FULL
)
settings.load_profile("no_deadline")


FIGURES = "figures"


def pytest_configure() -> None:
    gc.disable()  # collecting five thousand tests creates no garbage


def pytest_collection_finish() -> None:
    gc.freeze()  # the tests stay; scanning them in each collection took a quarter of the processor time
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Raise the time limit of full runs, and order the tests."""
    for item in items if FULL else ():
        item.add_marker(pytest.mark.timeout(FULL_SECONDS))
    order_tests(items)


def order_tests(items: list[pytest.Item]) -> None:
    """Begin with the long tests, so that none runs alone at the end, and spread those of each directory.

    Some directories need the processor, others wait: tests that run at the same time are then of both kinds.
    """
    directories: dict[Path, list[pytest.Item]] = {}
    for item in items:
        directories.setdefault(item.path.parent, []).append(item)
    places = {
        item: (place + 0.5) / len(group) for group in directories.values() for place, item in enumerate(group)
    }
    items.sort(key=lambda item: 0 if item.get_closest_marker("long") else places[item])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures of tests below the results; what other processes of pytest print is not shown."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    lines = [text for report in reports for name, text in report.user_properties if name == FIGURES]
    if lines:
        terminalreporter.section(FIGURES)
        terminalreporter.write_line("\n".join(sorted(map(str, lines))))


@pytest.fixture
def print_figures(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Return a function that prints a line with figures at the end of the run, also if the test passes."""
    return lambda line: record_property(FIGURES, line)


@pytest.fixture(scope="session")
def server_of_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    yield from shared_server(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return an empty directory in which the server of the test allows sessions."""
    if "server" in request.fixturenames and not has_own_server(request):
        shared: SharedServer = request.getfixturevalue("server_of_process")
        return shared.workspace
    directory = tmp_path / "workspace"
    directory.mkdir()
    return directory


@pytest.fixture
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    """Return a running server without anything of other tests.

    The test may kill it, start it again, change its environment, and read its data directory. With the mark
    `own_server` it is a new one; the mark `intervals` also shortens its waits.
    """
    async with server_of_test(request, tmp_path) as running:
        yield running


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return Certificate(tmp_path)


@pytest.fixture
async def tls_server(tmp_path: Path, workspace: Path, certificate: Certificate) -> AsyncIterator[TlsServer]:
    server = TlsServer(tmp_path / "home", workspace, certificate)
    await server.start()
    yield server
    await server.close()


@pytest.fixture(scope="session")
def faults() -> int:
    """Return how many kills a fault test does: 20, or 1000 with BULLPEN_FAULTS=full."""
    return 1000 if FULL else 20
