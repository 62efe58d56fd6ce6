"""Discovery: where the client finds the server and its token."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.client import ServerDiscovery, ServerNotRunning
from bullpen.domain.errors import Invalid, Unauthorized
from bullpen.home import hold


@pytest.fixture
def running(tmp_path: Path) -> Iterator[None]:
    """Hold the lock of the data directory, as a running server does."""
    with hold(tmp_path):
        yield


def write_files(home: Path, pid: int, token: str | None = "secret") -> None:
    """Write the files that a local server leaves in its data directory."""
    home.mkdir(exist_ok=True)
    (home / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:4321", "pid": pid}))
    if token is not None:
        (home / "token").write_text(f"{token}\n")


@pytest.mark.usefixtures("running")
def test_a_local_server_is_found_by_its_files(tmp_path: Path) -> None:
    write_files(tmp_path, os.getpid())
    assert ServerDiscovery(tmp_path, {}).find() == ("http://127.0.0.1:4321", "secret", None)


def test_the_environment_takes_precedence(tmp_path: Path) -> None:
    write_files(tmp_path, os.getpid())
    env = {"BULLPEN_URL": "https://far.example/", "BULLPEN_TOKEN": "other"}
    assert ServerDiscovery(tmp_path, env).find()[:2] == ("https://far.example", "other")


@pytest.mark.usefixtures("running")
def test_a_token_from_the_environment_is_used_for_the_local_server(tmp_path: Path) -> None:
    write_files(tmp_path, os.getpid(), token=None)
    found = ServerDiscovery(tmp_path, {"BULLPEN_TOKEN": "other"}).find()
    assert found[:2] == ("http://127.0.0.1:4321", "other")


def test_the_local_token_is_never_sent_to_another_machine(tmp_path: Path) -> None:
    write_files(tmp_path, os.getpid())
    with pytest.raises(Unauthorized, match="BULLPEN_TOKEN"):
        ServerDiscovery(tmp_path, {"BULLPEN_URL": "https://far.example"}).find()
    assert ServerDiscovery(tmp_path, {"BULLPEN_URL": "http://localhost:1"}).find().token == "secret"


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"url": "http://127.0.0.1:1"}'])
def test_without_an_address_the_server_is_not_running(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "server.json").write_text(content)
    with pytest.raises(ServerNotRunning, match="bullpen serve"):
        ServerDiscovery(tmp_path, {}).find()


def test_the_address_of_a_killed_server_is_not_trusted_even_if_its_pid_is_another_process(
    tmp_path: Path,
) -> None:
    with hold(tmp_path):
        pass  # the lock file stays
    write_files(tmp_path, os.getpid())
    with pytest.raises(ServerNotRunning):
        ServerDiscovery(tmp_path, {}).find()
    with pytest.raises(ServerNotRunning):
        ServerDiscovery(tmp_path, {}).pid()


def test_a_new_lock_removes_the_address_of_a_killed_server(tmp_path: Path) -> None:
    write_files(tmp_path, os.getpid())
    with hold(tmp_path), pytest.raises(ServerNotRunning):
        ServerDiscovery(tmp_path, {}).pid()


@pytest.mark.usefixtures("running")
def test_a_missing_token_is_an_error(tmp_path: Path) -> None:
    write_files(tmp_path, os.getpid(), token=None)
    with pytest.raises(Unauthorized, match="token"):
        ServerDiscovery(tmp_path, {}).find()


def test_an_invalid_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="BULLPEN_URL"):
        ServerDiscovery(tmp_path, {"BULLPEN_URL": "127.0.0.1:7420", "BULLPEN_TOKEN": "x"}).find()


def test_the_stamp_changes_with_every_start_of_a_server(tmp_path: Path) -> None:
    discovery = ServerDiscovery(tmp_path, {})
    before = discovery.stamp()
    write_files(tmp_path, os.getpid())
    first = discovery.stamp()
    (tmp_path / "server.json").unlink()
    write_files(tmp_path, os.getpid())
    assert len({before, first, discovery.stamp()}) == 3
