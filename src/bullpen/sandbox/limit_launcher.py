"""Let this process join the control group of its run and take its limits, then run the sandbox in its place.

This file is run as a script, outside of the sandbox and with variables that an agent may have chosen. From
some variables a shell would run code; Python in isolated mode ignores them all. The arguments are a limit of
processes or nothing, the files of the group, `--` and the command.
"""

import os
import sys
import time

NICENESS = 5  # beside a busy program of usual priority, a run gets a quarter of the processor
OOM_SCORE = 300  # of 1000: if the machine has no memory left, the kernel ends one of these processes first
_AUTOGROUP_SECONDS = 0.1  # the kernel takes one priority of a session in this time from ordinary users
_ATTEMPTS = 5


def main() -> None:
    """Prepare this process as far as the system allows it; the server watches what is not limited."""
    end = sys.argv.index("--")
    most, files, argv = sys.argv[1], sys.argv[2:end], sys.argv[end + 1 :]
    if most:
        import resource  # noqa: PLC0415 (with a control group it is not needed)

        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        soft = int(most) if hard == resource.RLIM_INFINITY else min(int(most), hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    os.nice(NICENESS)
    if os.getsid(0) == os.getpid():  # the group of another session is not only that of this run
        _write("/proc/self/autogroup", str(NICENESS))
    _write("/proc/self/oom_score_adj", str(OOM_SCORE))
    for file in files:
        _write(file, "0")
    with open("/proc/self/environ", "rb") as variables:  # without those that Python sets for itself
        pairs = [each.split(b"=", 1) for each in variables.read().split(b"\0") if b"=" in each]
    os.execvpe(argv[0], argv, dict(pairs))


def _write(path: str, value: str) -> None:
    """Write a value to a file of the kernel, if the kernel has it and takes the value."""
    for _ in range(_ATTEMPTS):
        try:
            with open(path, "w") as file:
                file.write(value)
        except BlockingIOError:
            time.sleep(_AUTOGROUP_SECONDS)
        except OSError:  # without contextlib, whose import takes as long as the rest
            return
        else:
            return


if __name__ == "__main__":
    main()
