"""The wheel has what an installed Bullpen needs and nothing else, and the sdist builds the same wheel."""

import tarfile
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from support.wheels import build

ROOT = Path(__file__).parents[1]
MAX_BYTES = 10 * 1024 * 1024

pytestmark = pytest.mark.xdist_group("wheel")  # built once, not once per process


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(build("wheel", tmp_path_factory.mktemp("wheel"))) as archive:
        yield archive


def test_the_wheel_has_the_page_and_every_asset_that_it_loads(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    page = wheel.read("bullpen/web/ui/index.html").decode()
    built = {
        f"bullpen/web/ui/{path.relative_to(ROOT / 'src/bullpen/web/ui')}"
        for path in (ROOT / "src/bullpen/web/ui").rglob("*")
        if path.is_file()
    }
    assert 'src="/assets/' in page
    assert built <= names


def test_the_wheel_has_its_type_marker_and_migrations(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    migrations = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src/bullpen/store/migrations").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "bullpen/py.typed" in names
    assert migrations and migrations <= names


def test_the_wheel_has_nothing_but_the_package(wheel: zipfile.ZipFile) -> None:
    foreign = [name for name in wheel.namelist() if not name.startswith(("bullpen/", "bullpen-"))]
    leftovers = [name for name in wheel.namelist() if "node_modules" in name or "__pycache__" in name]
    assert foreign == []
    assert leftovers == []


def test_the_wheel_is_small(wheel: zipfile.ZipFile) -> None:
    assert Path(str(wheel.filename)).stat().st_size < MAX_BYTES


def test_the_wheel_installs_the_command_and_the_license(wheel: zipfile.ZipFile) -> None:
    metadata = {
        name.partition(".dist-info/")[2]: wheel.read(name).decode()
        for name in wheel.namelist()
        if ".dist-info/" in name
    }
    assert "bullpen = bullpen.cli:main" in metadata["entry_points.txt"]
    assert "Apache License" in metadata["licenses/LICENSE"]


def test_the_wheel_has_complete_metadata(wheel: zipfile.ZipFile) -> None:
    metadata = _metadata(wheel)
    assert metadata["Name"] == "bullpen"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert {"Summary", "Author", "Keywords", "Description-Content-Type"} <= set(metadata.keys())
    classifiers = metadata.get_all("Classifier") or []
    assert {"Operating System :: POSIX :: Linux", "Typing :: Typed"} <= set(classifiers)
    required = [Requirement(line) for line in metadata.get_all("Requires-Dist") or []]
    bounds = {each.name: {bound.operator for bound in each.specifier} for each in required}
    assert bounds and [name for name, operators in bounds.items() if operators != {">=", "<"}] == []


def test_a_wheel_built_from_the_sdist_is_the_same_and_needs_no_node(
    wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    sdist = build("sdist", tmp_path / "sdist")
    assert sdist.stat().st_size < MAX_BYTES
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.glob("bullpen-*/")
    assert not list(tree.rglob("node_modules"))
    with zipfile.ZipFile(build("wheel", tmp_path / "wheel", tree)) as again:
        assert _contents(again) == _contents(wheel)


def _contents(wheel: zipfile.ZipFile) -> dict[str, int]:
    return {info.filename: info.CRC for info in wheel.infolist()}


def _metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return message_from_bytes(wheel.read(name))
