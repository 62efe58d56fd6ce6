"""Names that a run exchanges constantly never lead it out of its workspace."""

import subprocess
from pathlib import Path

import pytest

from support.sandboxed_runs import SandboxedRuns

TRIES = 100_000
# One process exchanges the names of a directory and of a link to where the secret is.
# The other opens and links files through them. It prints how often it has read its own file, the secret, and
# nothing.
RACE = """
import os, signal, sys
secret, target, tries = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.makedirs("plain", exist_ok=True)
name = os.path.basename(target)
with open(f"plain/{name}", "w") as file:
    file.write("mine")
os.symlink(os.path.dirname(target), "leading")
racer = os.fork()
if racer == 0:
    while True:
        for here, there in (("plain", "x"), ("leading", "plain"), ("plain", "leading"), ("x", "plain")):
            try:
                os.rename(here, there)
            except OSError:
                pass
seen = {"mine": 0, secret: 0, "": 0}
for number in range(tries):
    try:
        descriptor = os.open(f"plain/{name}", os.O_RDWR)
        seen[os.read(descriptor, 100).decode().strip()] += 1
        os.close(descriptor)
    except OSError:
        seen[""] += 1
    try:
        os.link(f"plain/{name}", f"hard{number % 2}")
        os.unlink(f"hard{number % 2}")
    except OSError:
        pass
os.kill(racer, signal.SIGKILL)
os.wait()
print(*seen.values())
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))


@pytest.mark.parametrize("mechanism", ["bubblewrap", "landlock"])
def test_raced_renames_and_links_never_lead_to_a_secret(tmp_path: Path, mechanism: str) -> None:
    runs = SandboxedRuns(tmp_path, mechanism)
    (runs.workspace / "race.py").write_text(RACE)
    for directory, target, secret in (
        ("token", runs.data / "token", "the token"),
        ("neighbour", runs.other / "secret", "theirs"),
    ):
        arguments = f"'{secret}' {target}"
        race = f"mkdir {directory} && cd {directory} && exec python3 ../race.py {arguments}"
        mine, found, nothing = outcomes(runs.run(f"{race} {TRIES // 2}"))
        assert (found, mine + nothing) == (0, TRIES // 2)
        assert min(mine, nothing) > 0, "the names were never exchanged"
        assert target.read_text().strip() == secret
    unprotected = f"mkdir open && cd open && exec python3 ../race.py {arguments} 20000"
    assert outcomes(runs.run(unprotected, "open"))[1] > 0


def outcomes(done: "subprocess.CompletedProcess[str]") -> list[int]:
    """Return how often a race read its own file, the secret, and nothing."""
    assert done.returncode == 0, done.stderr
    return [int(count) for count in done.stdout.split()]
