"""docs/keeper.md: a keeper started by hand leaves what the page says it does."""

import re
import shlex
from pathlib import Path

from docs.fences import tries, typed
from support.server import end_processes_of


@tries("docs/keeper.md", "python -m bullpen.keeper", "<home>/keeper/<id>.lock")
def test_a_keeper_started_by_hand_has_the_files_of_the_page(written: list[str], tmp_path: Path) -> None:
    command, layout = written
    home = tmp_path / "home"
    home.mkdir(0o700)
    line = command.replace("<home>", shlex.quote(str(home))).replace("[<id>]", "mine")
    try:
        typed(f"{line} > /dev/null", tmp_path, {"HOME": str(tmp_path)})
        named = re.findall(r"^<home>/(\S+?)(?:/…)? ", layout, re.MULTILINE)
        made = {path.relative_to(home).as_posix() for path in home.rglob("*")} - {"keeper"}
        assert made == {name.replace("<id>", "mine") for name in named}
    finally:
        end_processes_of(home)
