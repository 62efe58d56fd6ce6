"""A server with real agents, and a stub model whose answers the tests define."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from real_agents import installed
from real_agents.results import Results
from support.server import Server
from support.stub_model import StubModel


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", type=Path, metavar="PAGE", help="write the results to this page")


def pytest_configure(config: pytest.Config) -> None:
    if page := config.getoption("--record", None):
        config.pluginmanager.register(Results(page))


@pytest.fixture
async def model() -> AsyncIterator[StubModel]:
    async with StubModel.running() as running:
        yield running


@pytest.fixture
async def server(tmp_path: Path, workspace: Path, model: StubModel) -> AsyncIterator[Server]:
    """Start a server whose user has installed all three agents and configured keys for the stub model."""
    home = tmp_path / "user"
    installed.set_up(home, model.port)
    this = Server(tmp_path / "home", workspace, installed.environment(home, model.port))
    await this.start()
    yield this
    await this.close()
