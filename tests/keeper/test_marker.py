"""The marker of a child: exactly its descendants are found by it."""

import os
from pathlib import Path

from bullpen.keeper.marker import MARKER, find_marked, marker
from keeper.harness import KeeperHarness, wait_until


async def test_descendants_in_sessions_of_their_own_are_found(
    connected: KeeperHarness, tmp_path: Path
) -> None:
    home = tmp_path.name
    for worker, run in (("w1", 1), ("w1", 10), ("w10", 1)):
        env = {"PATH": os.environ["PATH"], MARKER: marker(home, worker, run)}
        await connected.spawn("setsid sleep 1000 & echo $!; sleep 1000", worker, run, env=env)
        await connected.wait_for_output(b"\n", worker, run)

    def marked(prefix: str) -> list[tuple[str, int]]:
        return sorted((worker, run) for _, worker, run in find_marked(prefix))

    expected = sorted([("w1", 1)] * 3 + [("w1", 10)] * 3 + [("w10", 1)] * 3)
    await wait_until(
        lambda: marked(home) == expected, "of each child a shell, a sleep and a process in a new session"
    )
    assert marked(f"{home}/w1/1") == [("w1", 1)] * 3
    assert marked(f"{home}/w1/") == sorted([("w1", 1)] * 3 + [("w1", 10)] * 3)
    assert marked(f"{home}/w10") == [("w10", 1)] * 3
    assert marked(f"{home}/w") == []
    assert marked(home[:-1]) == []
    for pid, _, _ in find_marked(home):
        connected.pids.add(os.getsid(pid))


async def test_a_malformed_marker_is_ignored(connected: KeeperHarness, tmp_path: Path) -> None:
    for run, value in enumerate(("home", "home/w", "home/w/x", "home/w/1/2", ""), 1):
        env = {"PATH": os.environ["PATH"], MARKER: f"{tmp_path.name}-{value}"}
        await connected.spawn(["sleep", "1000"], run=run, env=env)
    assert find_marked(f"{tmp_path.name}-home") == []
