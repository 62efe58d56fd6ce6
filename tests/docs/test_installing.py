"""What the pages say of installing and upgrading a wheel is done with one, without a network."""

import sysconfig
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bullpen import __version__
from docs.fences import tries, typed
from support.repositories import Repo
from support.wheels import VirtualEnvironment, build, run

pytestmark = pytest.mark.xdist_group("wheel")  # built once, not once per process
FILE = "dist/bullpen-*.whl"  # the same file, as the pages say


class Machine:
    """A home with `dist/` in it, a place for pip to install into and one for uv."""

    def __init__(self, home: Path, wheel: Path) -> None:
        self._home = home
        self._tools = home / "tools"
        (home / "dist").mkdir()
        (home / "dist" / wheel.name).symlink_to(wheel)
        self._environment = VirtualEnvironment(home / "environment")
        furnish(home / "environment")
        (bullpen,) = distributions(name="bullpen", path=[str(wheel)])
        (home / "needed").write_text("\n".join(Requirement(line).name for line in bullpen.requires or ()))

    def type(self, line: str) -> str:
        """Neither asks the network; uv, which cannot see what is here, is told to do without the rest."""
        pip = {"PIP_PYTHON": str(self._environment.python), "PIP_NO_INDEX": "1"}
        uv = {"UV_OFFLINE": "1", "UV_EXCLUDE": "needed", "UV_TOOL_DIR": str(self._tools)}
        return typed(line, self._home, {"HOME": str(self._home)} | pip | uv)

    def installed(self, tool: str) -> Path:
        """The package as pip or uv has laid it down; the command runs."""
        place = {"pip": self._home / "environment", "uv": self._tools / "bullpen"}[tool]
        furnish(place)
        assert __version__ in run([str(place / "bin" / "bullpen"), "--version"])
        (package,) = place.glob("lib/python*/site-packages/bullpen/__init__.py")
        return package


def furnish(environment: Path) -> None:
    """All that is installed for us, but for Bullpen itself."""
    (packages,) = environment.glob("lib/python*/site-packages")
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "bullpen" not in path.name and not (packages / path.name).exists():
            (packages / path.name).symlink_to(path)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def machine(wheel: Path, tmp_path: Path) -> Machine:
    return Machine(tmp_path, wheel)


@tries("README.md", "pip install", "uv tool install")
def test_pip_and_uv_install_the_wheel(written: list[str], machine: Machine) -> None:
    for line in written:
        machine.type(f"{line} {FILE}")
        machine.installed(line.split()[0])


@tries("docs/operations.md", "pip install --force-reinstall", "uv tool install --force")
def test_pip_and_uv_install_the_wheel_again(written: list[str], machine: Machine) -> None:
    pip, uv = written
    for first, again in ((f"pip install {FILE}", pip), (f"uv tool install {FILE}", f"{uv} {FILE}")):
        machine.type(first)
        package = machine.installed(first.split()[0])
        new = package.read_text()
        package.unlink()
        package.write_text(f"{new}# old\n")
        if "pip install" in first:
            machine.type(f"{first} --upgrade")
            assert package.read_text() != new  # it leaves the version it has alone
        machine.type(again)
        assert package.read_text() == new


@tries("docs/operations.md", 'pip install "$(ls')
def test_pip_installs_the_driver_of_postgresql_with_it(written: list[str], machine: Machine) -> None:
    assert "psycopg[binary]" in machine.type(written[0])
    machine.installed("pip")


@tries("README.md", "pipx install", "uv tool install")
def test_pipx_is_told_what_uv_is_told(written: list[str]) -> None:
    assert written[0] == as_pipx(written[1])


@tries("docs/operations.md", "pipx install", "uv tool install")
def test_pipx_is_told_again_what_uv_is_told(written: list[str]) -> None:
    assert written[0] == as_pipx(written[1])


def as_pipx(line: str) -> str:
    """It is no tool of the tests; uv, which they run, takes the same words."""
    return f"{line.replace('uv tool', 'pipx')} {FILE}"


@tries("docs/operations.md", "git pull")
def test_a_clone_is_brought_up_to_date(written: list[str], tmp_path: Path) -> None:
    ours = Repo(tmp_path / "ours")
    ours.git("clone", "-q", str(ours.path), str(tmp_path / "theirs"))
    ours.write("news.txt", "new")
    ours.commit("second")
    typed(written[0], tmp_path / "theirs", {"HOME": str(tmp_path)})
    assert (tmp_path / "theirs" / "news.txt").read_text() == "new"
