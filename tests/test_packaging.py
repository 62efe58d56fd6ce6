"""The wheel holds what an installed Bullpen needs to run, and nothing of what only built it."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LARGEST = 10 * 1024 * 1024

pytestmark = pytest.mark.xdist_group("wheel")  # built once, not once per process


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    built = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"TERM": "dumb"}
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = out.glob("bullpen-*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_has_the_page_with_every_asset_it_asks_for(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    page = wheel.read("bullpen/web/ui/index.html").decode()
    built = {
        f"bullpen/web/ui/{path.relative_to(ROOT / 'src/bullpen/web/ui')}"
        for path in (ROOT / "src/bullpen/web/ui").rglob("*")
        if path.is_file()
    }
    assert 'src="/assets/' in page
    assert built <= names


def test_the_wheel_is_typed_and_brings_its_migrations(wheel: zipfile.ZipFile) -> None:
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
    assert Path(str(wheel.filename)).stat().st_size < LARGEST


def test_the_wheel_installs_the_command_and_the_license(wheel: zipfile.ZipFile) -> None:
    metadata = {
        name.partition(".dist-info/")[2]: wheel.read(name).decode()
        for name in wheel.namelist()
        if ".dist-info/" in name
    }
    assert "bullpen = bullpen.cli:main" in metadata["entry_points.txt"]
    assert "Apache License" in metadata["licenses/LICENSE"]
