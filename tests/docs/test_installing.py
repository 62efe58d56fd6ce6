"""The pages' commands that install and upgrade a wheel work, without a network."""

import sysconfig
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bullpen import __version__
from docs.page_examples import run_line, uses_examples
from support.repositories import Repo
from support.wheels import VirtualEnvironment, build, run

pytestmark = pytest.mark.xdist_group("wheel")  # built once, not once per process
WHEEL = "dist/bullpen-*.whl"  # the file as the pages name it
PIPX_OPTIONS = {"--force"}  # options of pipx, which the tests cannot run, that uv takes too


class UserMachine:
    """A home directory with `dist/`, an environment for pip and a tool directory for uv."""

    def __init__(self, home: Path, wheel: Path) -> None:
        self._home = home
        self._tools = home / "tools"
        (home / "dist").mkdir()
        (home / "dist" / wheel.name).symlink_to(wheel)
        self._environment = VirtualEnvironment(home / "environment")
        link_requirements(home / "environment")
        (bullpen,) = distributions(name="bullpen", path=[str(wheel)])
        (home / "needed").write_text("\n".join(Requirement(line).name for line in bullpen.requires or ()))

    def run_line(self, line: str) -> str:
        """Run a line without network access. uv skips the requirements, which it cannot find."""
        pip = {"PIP_PYTHON": str(self._environment.python), "PIP_NO_INDEX": "1"}
        uv = {"UV_OFFLINE": "1", "UV_EXCLUDE": "needed", "UV_TOOL_DIR": str(self._tools)}
        return run_line(line, self._home, {"HOME": str(self._home)} | pip | uv)

    def installed(self, tool: str) -> Path:
        """Return the installed package of pip or uv, after its command has run."""
        environment = {"pip": self._home / "environment", "uv": self._tools / "bullpen"}[tool]
        link_requirements(environment)
        assert __version__ in run([str(environment / "bin" / "bullpen"), "--version"])
        (package,) = environment.glob("lib/python*/site-packages/bullpen/__init__.py")
        return package


def link_requirements(environment: Path) -> None:
    """Link all packages of this environment except Bullpen."""
    (packages,) = environment.glob("lib/python*/site-packages")
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "bullpen" not in path.name and not (packages / path.name).exists():
            (packages / path.name).symlink_to(path)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def machine(wheel: Path, tmp_path: Path) -> UserMachine:
    return UserMachine(tmp_path, wheel)


@uses_examples("README.md", "pip install", "uv tool install")
def test_pip_and_uv_install_the_wheel(shown_examples: list[str], machine: UserMachine) -> None:
    for line in shown_examples:
        machine.run_line(f"{line} {WHEEL}")
        machine.installed(line.split()[0])


@uses_examples("docs/operations.md", "pip install --force-reinstall", "uv tool install --force")
def test_pip_and_uv_install_the_wheel_again(shown_examples: list[str], machine: UserMachine) -> None:
    pip, uv = shown_examples
    for first, again in ((f"pip install {WHEEL}", pip), (f"uv tool install {WHEEL}", f"{uv} {WHEEL}")):
        machine.run_line(first)
        package = machine.installed(first.split()[0])
        new = package.read_text()
        package.unlink()
        package.write_text(f"{new}# old\n")
        if "pip install" in first:
            machine.run_line(f"{first} --upgrade")
            assert package.read_text() != new  # pip does not replace the same version
        machine.run_line(again)
        assert package.read_text() == new


@uses_examples("docs/operations.md", 'pip install "$(ls')
def test_pip_installs_bullpen_with_the_driver_of_postgresql(
    shown_examples: list[str], machine: UserMachine
) -> None:
    assert "psycopg[binary]" in machine.run_line(shown_examples[0])
    machine.installed("pip")


@uses_examples("README.md", "pipx install", "uv tool install")
def test_the_pipx_command_of_the_readme_matches_the_one_for_uv(shown_examples: list[str]) -> None:
    check_pipx_command(*shown_examples)


@uses_examples("docs/operations.md", "pipx install", "uv tool install")
def test_the_pipx_command_of_the_page_matches_the_one_for_uv(shown_examples: list[str]) -> None:
    check_pipx_command(*shown_examples)


def check_pipx_command(pipx: str, uv: str) -> None:
    """Check that a pipx command has the arguments of a tested uv command, and that pipx takes them."""
    assert pipx == f"{uv.replace('uv tool', 'pipx')} {WHEEL}"
    assert {word for word in pipx.split() if word.startswith("-")} <= PIPX_OPTIONS


@uses_examples("docs/operations.md", "git pull")
def test_git_pull_updates_a_clone(shown_examples: list[str], tmp_path: Path) -> None:
    source = Repo(tmp_path / "source")
    source.git("clone", "-q", str(source.path), str(tmp_path / "clone"))
    source.write("news.txt", "new")
    source.commit("second")
    run_line(shown_examples[0], tmp_path / "clone", {"HOME": str(tmp_path)})
    assert (tmp_path / "clone" / "news.txt").read_text() == "new"
