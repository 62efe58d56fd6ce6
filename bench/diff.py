"""Measure the diff of a large repository: its response time, and the CPU of watching while nothing changes.

.venv/bin/python bench/diff.py [--quick]
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from harness.processes import cpu_seconds
from systems.bullpen import Bullpen

GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "core.fsync=none")
TARGET_MS = 300.0
SETTLING_SECONDS = 10.0
QUIET_SECONDS = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the diff of a repository with many files.")
    parser.add_argument(
        "--quick", action="store_true", help="a small repository, to check that the benchmark works"
    )
    quick = parser.parse_args().quick
    files, changed, rounds = (500, 20, 3) if quick else (50_000, 200, 15)
    with tempfile.TemporaryDirectory() as directory:
        repository = Path(directory, "repository")
        make_repository(repository, files, changed)
        with Bullpen() as system:
            session = system.call("POST", "/api/sessions", {"locationPath": str(repository)})
            path = f"/api/sessions/{session['id']}"
            samples = [timed(system, f"{path}/diff", changed) for _ in range(rounds)]
            without, watching = measure_watching(system, path)
    print(f"{files} files, {changed} changed")
    print(f"  first  {samples[0]:7.0f} ms")
    print(f"  warm   {median(samples[1:]):7.0f} ms   target {TARGET_MS:.0f}, worst {max(samples[1:]):.0f}")
    print(f"  watch  {watching:7.2f} % of a core while nothing changes, {without:.2f} % without a watcher")


def make_repository(path: Path, files: int, changed: int) -> None:
    for number in range(files):
        file = path / f"d{number % 500}" / f"f{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"line {line} of {number}\n" for line in range(20)))
    for arguments in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "all")):
        subprocess.run([*GIT, *arguments], cwd=path, check=True)
    for number in range(changed):
        with (path / f"d{number % 500}" / f"f{number}.txt").open("a") as changing:
            changing.write("one more line\n")
    os.sync()  # so that no files are written to the disk during the measurement


def timed(system: Bullpen, path: str, changed: int) -> float:
    started = time.perf_counter()
    found = system.call("GET", path)
    milliseconds = (time.perf_counter() - started) * 1000
    if len(found["files"]) != changed:
        raise RuntimeError(f"{len(found['files'])} files in the diff, not {changed}")
    return milliseconds


def measure_watching(system: Bullpen, path: str) -> tuple[float, float]:
    """Return the CPU of an idle server in percent of a core, without a diff worker and with one."""
    without = idle_cpu_percent(system)
    system.call("POST", f"{path}/workers", {"type": "diff"})
    while not any(worker["state"] == "active" for worker in system.call("GET", f"{path}/workers")["workers"]):
        time.sleep(0.1)
    return without, idle_cpu_percent(system)


def idle_cpu_percent(system: Bullpen) -> float:
    time.sleep(SETTLING_SECONDS)
    before = cpu_seconds(system.pids())
    time.sleep(QUIET_SECONDS)
    return (cpu_seconds(system.pids()) - before) / QUIET_SECONDS * 100


if __name__ == "__main__":
    main()
