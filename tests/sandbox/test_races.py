"""Names that a run exchanges constantly never lead it out of its workspace."""

from pathlib import Path

import pytest

from support.sandboxed_runs import SandboxedRuns

TRIES = 100_000
# One process exchanges the names of a directory and of a link to where the secret is.
# The other opens and links files through them. It ends with 1 if it ever sees the secret.
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
found = 0
for number in range(tries):
    try:
        descriptor = os.open(f"plain/{name}", os.O_RDWR)
        found += os.read(descriptor, 100).decode().strip() == secret
        os.close(descriptor)
    except OSError:
        pass
    try:
        os.link(f"plain/{name}", f"hard{number % 2}")
        os.unlink(f"hard{number % 2}")
    except OSError:
        pass
os.kill(racer, signal.SIGKILL)
os.wait()
sys.exit(1 if found else 0)
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
        done = runs.run(f"{race} {TRIES // 2}")
        assert done.returncode == 0, done.stderr
        assert target.read_text().strip() == secret
    assert runs.run(f"mkdir open && cd open && exec python3 ../race.py {arguments} 20000", "open").returncode
