"""What the scripted agent really got and said: append-only, synced line by line, an oracle for tests."""

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HUGE = 1 << 20  # a longer line is journaled by size and hash


class Journal:
    """One JSON a line: `{t, pid, dir: in|out|note, line}`, or `size` and `sha256` in place of a huge line."""

    def __init__(self, path: Path) -> None:
        self.before = list(read_journal(path))
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, direction: str, line: bytes) -> None:
        record: dict[str, Any] = {"t": time.time(), "pid": os.getpid(), "dir": direction}
        if len(line) > HUGE:
            record |= {"size": len(line), "sha256": hashlib.sha256(line).hexdigest()}
        else:
            record["line"] = line.decode("utf-8", "surrogateescape")
        os.write(self._fd, json.dumps(record).encode() + b"\n")
        os.fdatasync(self._fd)


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """The whole records; the last may be cut off."""
    if path.exists():
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield json.loads(line)


def message_of(record: dict[str, Any]) -> dict[str, Any]:
    """The message a record tells of; empty when it is none."""
    try:
        message = json.loads(record.get("line", ""))
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def prompts_in(path: Path) -> list[str]:
    """The texts of all prompts the agent got, in order, each as often as it got it."""
    got = [message_of(record) for record in read_journal(path) if record["dir"] == "in"]
    return [prompt_text(message) for message in got if message.get("method") == "session/prompt"]


def prompt_text(message: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in message["params"]["prompt"])


def streamed_in(records: list[dict[str, Any]]) -> list[int]:
    """The numbers that were streamed, in order."""
    said = (record.get("line", "") for record in records if record["dir"] == "out")
    return [int(number) for line in said for number in re.findall(r'"<(\d+)>', line)]
