"""Each probe has the expected result at each level: as root and as another user, with each mechanism."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.other_user import run_python

# What is possible at a level besides what its name prevents. Everything is possible at `open`.
OPEN_NETWORK = {"connect by TCP", "connect by IPv6", "send by UDP"}
POSSIBLE = {
    ("bubblewrap", "workspace"): {*OPEN_NETWORK, "connect to an abstract socket"},
    ("bubblewrap", "sealed"): set(),
    ("landlock", "workspace"): {
        *OPEN_NETWORK,
        "connect to a daemon",
        "connect to the keeper",
        "type into another terminal",
        "write a hook of git",
        "write the configuration of git",
        "replace the configuration of git",
    },
}
OF_ROOT = {
    "open a raw socket",
    "mount",
    "make a device",
    "change a setting of the kernel",
    "change the handler of core dumps",
    "use a capability",
}
USERS = ["root", "ordinary"] if os.geteuid() == 0 else ["ordinary"]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mechanism", ["bubblewrap", "landlock"])
def test_every_probe_has_its_result_at_every_level(mechanism: str, user: str, tmp_path: Path) -> None:
    results = run_probes(mechanism, user, tmp_path)
    levels = dict.fromkeys(each["level"] for each in results)
    assert set(levels) == {"open"} | {level for name, level in POSSIBLE if name == mechanism}
    probes = {each["probe"] for each in results}
    assert len(probes) >= 30
    assert probes >= OF_ROOT if user == "root" else probes.isdisjoint(OF_ROOT)
    table = {(each["probe"], each["level"]): each["succeeded"] for each in results}
    expected = {
        (probe, level): level == "open" or probe in POSSIBLE[mechanism, level]
        for probe in probes
        for level in levels
    }
    assert {cell: result for cell, result in table.items() if result != expected[cell]} == {}


def run_probes(mechanism: str, user: str, directory: Path) -> list[dict[str, Any]]:
    """Return the results of `bullpen sandbox test`, run by a user whose home is the directory."""
    arguments = ["-m", "bullpen", "sandbox", "test", "--json", "--mechanism", mechanism]
    done = run_python(arguments, user, directory)
    assert done.returncode == 0, done.stderr + done.stdout
    answer = json.loads(done.stdout)
    assert answer["mechanism"] == mechanism
    results: list[dict[str, Any]] = answer["probes"]
    return results
