"""Let this process join the control group of its run and take its limits, then run the sandbox in its place.

This file is run as a script, outside of the sandbox and with variables that an agent may have chosen. From
some variables a shell would run code; Python in isolated mode ignores them all. The arguments are a limit of
processes or nothing, the files of the group, `--` and the command.
"""

import os
import sys

OOM_SCORE = 300  # of 1000: if the machine has no memory left, the kernel ends one of these processes first


def main() -> None:
    """Prepare this process as far as the system allows it; the server watches what is not limited."""
    end = sys.argv.index("--")
    most, files, argv = sys.argv[1], sys.argv[2:end], sys.argv[end + 1 :]
    if most:
        import resource  # noqa: PLC0415 (with a control group it is not needed)

        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        soft = int(most) if hard == resource.RLIM_INFINITY else min(int(most), hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    for path, value in (("/proc/self/oom_score_adj", str(OOM_SCORE)), *((file, "0") for file in files)):
        try:
            with open(path, "w") as file:
                file.write(value)
        except OSError:  # without contextlib, whose import takes as long as the rest
            continue
    with open("/proc/self/environ", "rb") as variables:  # without those that Python sets for itself
        pairs = [each.split(b"=", 1) for each in variables.read().split(b"\0") if b"=" in each]
    os.execvpe(argv[0], argv, dict(pairs))


if __name__ == "__main__":
    main()
