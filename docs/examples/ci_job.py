"""Run a command of a CI job in a terminal of Bullpen, print its output, and exit with its exit code.

    python docs/examples/ci_job.py ~/src/site make test

The command goes on when this program ends or the server restarts. People can watch it while it runs.
"""

import os
import shlex
import sys

from bullpen.client import ExitFrame, OutputFrame, SyncClient
from bullpen.domain.errors import BullpenError

USAGE = "usage: ci_job.py DIRECTORY COMMAND [ARGUMENT...]"


def run(directory: str, command: list[str]) -> int:
    """Run the command in a new session, copy its output to standard output, and return its exit code."""
    with SyncClient() as bullpen:
        session = bullpen.create_session(location_path=directory, title=f"ci: {shlex.join(command)}"[:80])
        try:
            worker = bullpen.add_worker(session.id, command=command)
        except BullpenError as refused:  # there is no such program, for example
            bullpen.complete_session(session.id)
            sys.exit(f"ci_job.py: {refused}")
        with bullpen.terminal(session.id, worker.id, after=0) as terminal:
            for frame in terminal:
                match frame:
                    case OutputFrame(data=data):
                        sys.stdout.buffer.write(data)
                        sys.stdout.flush()
                    case ExitFrame(code=code):
                        bullpen.complete_session(session.id)
                        return 1 if code is None else code
    return 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(USAGE)
    sys.exit(run(os.path.abspath(sys.argv[1]), sys.argv[2:]))
