"""Print a number 100 times a second, and write each to a file before. Argument: the file."""

import sys
import time


def count(path: str) -> None:
    with open(path, "w", buffering=1) as file:
        due, number = time.monotonic(), 0
        while True:
            number += 1
            file.write(f"{number}\n")
            sys.stdout.write(f"<{number}>\r\n")
            sys.stdout.flush()
            due += 0.01
            time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    count(sys.argv[1])
