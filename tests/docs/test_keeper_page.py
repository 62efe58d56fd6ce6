"""docs/keeper.md names every module, and a keeper that is started manually creates the files of the page."""

import re
import shlex
from pathlib import Path

from docs.page_examples import ROOT, run_line, uses_examples
from support.server import end_processes_of


@uses_examples("docs/keeper.md", "python -m bullpen.keeper", "<home>/keeper/<id>.lock")
def test_a_keeper_started_manually_creates_the_files_of_the_page(
    shown_examples: list[str], tmp_path: Path
) -> None:
    command, layout = shown_examples
    home = tmp_path / "home"
    home.mkdir(0o700)
    line = command.replace("<home>", shlex.quote(str(home))).replace("[<id>]", "mine")
    try:
        run_line(f"{line} > /dev/null", tmp_path, {"HOME": str(tmp_path)})
        documented = re.findall(r"^<home>/(\S+?)(?:/…)? ", layout, re.MULTILINE)
        created = {path.relative_to(home).as_posix() for path in home.rglob("*")} - {"keeper"}
        assert created == {name.replace("<id>", "mine") for name in documented}
    finally:
        end_processes_of(home)


def test_the_table_of_the_page_names_every_module_of_the_keeper() -> None:
    rows = re.findall(r"^\| ((?:`\w+` ?)+)\|", (ROOT / "docs/keeper.md").read_text(), re.MULTILINE)
    named = re.findall(r"\w+", " ".join(rows))
    modules = (ROOT / "src/bullpen/keeper").glob("*.py")
    assert sorted(named) == sorted(path.stem for path in modules if path.stem != "__init__")
