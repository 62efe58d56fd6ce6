"""Run mutation tests with mutmut: scripts/mutants.py [--seed N] [--sample N] [part ...]

Change the source of a part in one place at a time and run the tests of that part. A mutant survives if no
test fails; docs/mutants.md has the reason for each known survivor.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mutmut.mutation.diff_apply import get_diff_for_mutant

ROOT = Path(__file__).parents[1]
WORK = ROOT / ".mutants"
BIN = Path(sys.executable).parent
KILLED, SURVIVED, TIMEOUT = "killed", "survived", "timeout"
# Exit codes of pytest; 33: no test calls the function. Any other code is the signal that ended the tests.
STATUS: dict[int | None, str] = {0: SURVIVED, 1: KILLED, 3: KILLED, 33: SURVIVED}
SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = {sources}
pytest_add_cli_args_test_selection = {tests}
also_copy = ["docs", "scripts"]
pytest_add_cli_args = ["-k", "not postgresql"]
process_isolation = "forkserver"
timeout_constant = 4.0
timeout_multiplier = 5.0
use_git_change_detection = false
"""


@dataclass(frozen=True)
class Part:
    """Source files and their tests, which must call them in the process of pytest: mutmut sees no other."""

    sources: list[str]
    tests: list[str]
    sample: int = 150


PARTS = {
    "domain": Part(["domain/*.py"], ["domain", "agents/test_definitions.py"], sample=400),
    "jsonrpc": Part(["wire/jsonrpc.py"], ["wire/test_jsonrpc.py"], sample=400),
    "acp": Part(["wire/acp*.py"], ["wire/test_acp*.py"], sample=400),
    "log": Part(["log/*.py"], ["log/test_[prstz]*.py", "log/test_fo*.py", "log/test_log.py"]),
    "keeper": Part(
        ["keeper/input.py", "keeper/spool.py"], ["keeper/test_spool.py", "keeper/test_input_queue.py"]
    ),
    "append": Part(["store/append.py", "store/append_group.py"], ["store/test_events.py"]),
    "export": Part(
        [
            *("sessions/export*.py", "sessions/import*.py"),
            *("wire/markdown.py", "wire/event_lines.py", "wire/sessions_json.py"),
        ],
        [
            *("wire/test_markdown.py", "wire/test_event_lines.py", "wire/test_sessions_json.py"),
            *("sessions/test_export.py", "sessions/test_import.py"),
        ],
    ),
}


class Run:
    """A copy of the tree in which one part is mutated and tested."""

    def __init__(self, name: str) -> None:
        self.part = PARTS[name]
        self.directory = WORK / name
        self.mutants = self.directory / "mutants"
        self._environment = os.environ | {
            "PYTHONPATH": str(self.mutants / "src"),
            "PYTHONDONTWRITEBYTECODE": "",
        }

    def prepare(self) -> list[str]:
        """Copy the tree and create the mutants in the copy; return the names of all mutants."""
        shutil.rmtree(self.directory, ignore_errors=True)
        for name in ("src", "tests", "docs", "scripts"):
            shutil.copytree(ROOT / name, self.directory / name)
        paths = [path for pattern in self.part.tests for path in sorted((ROOT / "tests").glob(pattern))]
        tests = [str(path.relative_to(ROOT)) for path in paths]
        sources = [f"src/bullpen/{pattern}" for pattern in self.part.sources]
        settings = SETTINGS.format(sources=json.dumps(sources), tests=json.dumps(tests))
        (self.directory / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + settings)
        os.chdir(self.directory)  # mutmut reads its files from the working directory
        self._mutmut("run", "no such mutant")
        return sorted(self._results())

    def test(self, mutants: list[str]) -> dict[str, str]:
        """Run the tests against the mutants; return the status of each."""
        self._mutmut("run", "--max-children", "1", *mutants)
        codes = self._results()
        if any(codes[mutant] is None for mutant in mutants):
            sys.exit(f"mutmut did not test every mutant: see {self.directory / 'mutmut.log'}")
        return {mutant: STATUS.get(codes[mutant], TIMEOUT) for mutant in mutants}

    def print_mutant(self, mutant: str) -> None:
        path = "src/" + mutant.partition(".x")[0].replace(".", "/") + ".py"
        difference = get_diff_for_mutant(mutant, path=path).splitlines()[2:]
        print(path, *difference, sep="\n", end="\n\n", flush=True)

    def _mutmut(self, *arguments: str) -> None:
        with open(self.directory / "mutmut.log", "wb") as log:
            command = [BIN / "mutmut", *arguments]
            subprocess.run(command, env=self._environment, stdout=log, stderr=log, check=False)

    def _results(self) -> dict[str, int | None]:
        files = self.mutants.rglob("*.meta")
        return {
            name: code
            for file in files
            for name, code in json.loads(file.read_text())["exit_code_by_key"].items()
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="part", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=random.randrange(10000))
    parser.add_argument("--sample", type=int, help="number of mutants of each part")
    options = parser.parse_args()
    os.nice(19)
    rows = [["part", "mutants", "tested", KILLED, SURVIVED, TIMEOUT, "score", "seed"]]
    for name in options.parts or PARTS:
        run = Run(name)
        mutants = run.prepare()
        tested = mutants
        if len(mutants) > (size := options.sample or run.part.sample):
            tested = sorted(random.Random(options.seed).sample(mutants, size))
        statuses = run.test(tested)
        for mutant in tested:
            if statuses[mutant] == SURVIVED:
                run.print_mutant(mutant)
        counts = [list(statuses.values()).count(status) for status in (KILLED, SURVIVED, TIMEOUT)]
        score = f"{100 * (1 - counts[1] / len(tested)):.1f} %"
        rows.append([name, *map(str, [len(mutants), len(tested), *counts]), score, str(options.seed)])
    for row in rows:
        print("".join(f"{cell:>10}" for cell in row))


if __name__ == "__main__":
    main()
