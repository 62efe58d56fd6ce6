"""The marker: descendants are found by it, and nobody else."""

import os
from pathlib import Path

from bullpen.keeper.marker import MARKER, find_marked, marker
from keeper.house import House, until


async def test_descendants_in_sessions_of_their_own_are_found(open_house: House, tmp_path: Path) -> None:
    home = tmp_path.name
    for worker, run in (("w1", 1), ("w1", 10), ("w10", 1)):
        env = {"PATH": os.environ["PATH"], MARKER: marker(home, worker, run)}
        await open_house.spawn("setsid sleep 1000 & echo $!; sleep 1000", worker, run, env=env)
        await open_house.says(b"\n", worker, run)

    def marked(prefix: str) -> list[tuple[str, int]]:
        return sorted((worker, run) for _, worker, run in find_marked(prefix))

    everyone = sorted([("w1", 1)] * 3 + [("w1", 10)] * 3 + [("w10", 1)] * 3)
    await until(lambda: marked(home) == everyone, "of each a shell, a sleep and the one in a new session")
    assert marked(f"{home}/w1/1") == [("w1", 1)] * 3
    assert marked(f"{home}/w1/") == sorted([("w1", 1)] * 3 + [("w1", 10)] * 3)
    assert marked(f"{home}/w10") == [("w10", 1)] * 3
    assert marked(f"{home}/w") == []
    assert marked(home[:-1]) == []
    for pid, _, _ in find_marked(home):
        open_house.pids.add(os.getsid(pid))


async def test_a_marker_of_the_wrong_shape_is_nobodys(open_house: House, tmp_path: Path) -> None:
    for run, value in enumerate(("home", "home/w", "home/w/x", "home/w/1/2", ""), 1):
        env = {"PATH": os.environ["PATH"], MARKER: f"{tmp_path.name}-{value}"}
        await open_house.spawn(["sleep", "1000"], run=run, env=env)
    assert find_marked(f"{tmp_path.name}-home") == []
