"""Run several commands at the same time, each in a terminal of one session, and print a summary.

    python docs/examples/nightly_run.py ~/src/site "lint=make check" "test=make test"

Exits with 1 if a command failed; the summary then has the last lines of its output.
"""

import asyncio
import os
import sys
import time
from dataclasses import dataclass

from bullpen.client import Client, ExitFrame, OutputFrame

MAX_OUTPUT_LINES = 5  # of a failed command


@dataclass
class Result:
    """The exit code, duration and output of a command."""

    name: str
    code: int
    seconds: float
    output: str


async def run(client: Client, session_id: str, name: str, command: str) -> Result:
    """Run a command in a new terminal of the session."""
    started, output, code = time.monotonic(), b"", 1
    worker = await client.add_worker(session_id, name=name, role=name, command=["sh", "-c", command])
    async with client.terminal(session_id, worker.id, after=0) as terminal:
        async for frame in terminal:
            if isinstance(frame, OutputFrame):
                output += frame.data
            elif isinstance(frame, ExitFrame) and frame.code is not None:
                code = frame.code
    return Result(name, code, time.monotonic() - started, output.decode(errors="replace"))


async def run_all(directory: str, commands: dict[str, str]) -> list[Result]:
    """Run the commands in a new session, and end the session."""
    async with Client() as client:
        session = await client.create_session(location_path=directory, title="nightly")
        results = await asyncio.gather(
            *(run(client, session.id, name, command) for name, command in commands.items())
        )
        await client.complete_session(session.id)
    return results


def summary(results: list[Result]) -> str:
    """Return one line for each command, and the last output of the failed ones."""
    lines = []
    for result in results:
        verdict = "ok" if result.code == 0 else f"failed with code {result.code}"
        lines.append(f"{result.name}: {verdict} after {result.seconds:.1f} s")
        if result.code != 0:
            lines += [f"    {line}" for line in result.output.splitlines()[-MAX_OUTPUT_LINES:]]
    succeeded = sum(result.code == 0 for result in results)
    return "\n".join([*lines, f"{succeeded} of {len(results)} succeeded"])


if __name__ == "__main__":
    if len(sys.argv) < 3 or not all("=" in task for task in sys.argv[2:]):
        sys.exit("usage: nightly_run.py DIRECTORY NAME=COMMAND...")
    commands = dict(task.split("=", 1) for task in sys.argv[2:])
    results = asyncio.run(run_all(os.path.abspath(sys.argv[1]), commands))
    print(summary(results))
    sys.exit(any(result.code != 0 for result in results))
