"""Server and keeper ask for short time slices, and nothing that they start has them."""

import inspect
import os
import subprocess
import sys

import pytest

from bullpen.keeper import priority, time_slice
from bullpen.keeper.time_slice import SLICE_NS
from keeper.harness import KeeperHarness
from support import time_slices
from support.other_user import SYSTEM_PYTHON
from support.server import Server

USUAL = time_slices.time_slice(0)
SHORT = SLICE_NS if USUAL else 0
NOBODY = 65534
# Its arguments are sources of modules, which the ordinary user may not be able to read. Such a user cannot
# take the flag away that keeps the slice from children.
CHANGES_POLICY = """
import os, sys
for source in sys.argv[1:]:
    exec(source, module := {})
    globals().update((name, value) for name, value in module.items() if not name.startswith("_"))
shorten_time_slice()
used = SchedulingPriority()
for batch in (True, False):
    used.change(batch)
    print(used.is_batch, os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, flush=True)
os.nice(3)
print(os.nice(0), time_slice(0), flush=True)
if os.fork() == 0:
    print(time_slice(0), flush=True)
"""


async def test_only_the_event_loop_of_the_server_has_short_slices(server: Server) -> None:
    session = await server.new_session()
    await server.call("POST", f"/api/sessions/{session['id']}/workers", 201, json={"type": "terminal"})
    threads = {int(each) for each in os.listdir(f"/proc/{server.pid}/task")}
    assert time_slices.time_slice(server.pid) == SHORT
    assert {time_slices.time_slice(each) for each in threads - {server.pid}} == {USUAL}


async def test_the_keeper_has_short_slices_and_its_children_the_usual_ones(connected: KeeperHarness) -> None:
    spawned = await connected.spawn("sleep 1000")
    assert time_slices.time_slice(connected.keeper.pid) == SHORT
    assert time_slices.time_slice(spawned.pid) == USUAL


@pytest.mark.parametrize("is_root", [True, False])
def test_the_slice_stays_with_a_change_of_the_policy_and_the_niceness(is_root: bool) -> None:
    sources = [inspect.getsource(each) for each in (time_slice, priority, time_slices)]
    python = [sys.executable] if is_root or os.geteuid() else [SYSTEM_PYTHON]
    become = [] if is_root or os.geteuid() else ["setpriv", f"--reuid={NOBODY}", "--clear-groups"]
    argv = [*become, *python, "-I", "-S", "-c", CHANGES_POLICY, *sources]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd="/")
    expected = [f"True {os.SCHED_BATCH}", f"False {os.SCHED_OTHER}", f"3 {SHORT}", f"{USUAL}"]
    assert done.stdout.splitlines() == expected
