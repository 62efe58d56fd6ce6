"""The lines that the scripted agent received and sent, in a file that is synced after each line."""

import json
import os
import re
import time
from collections.abc import Iterator

from support.process_identity import process_identity

from .json_types import Json

MAX_LINE_BYTES = 1 << 20  # a longer line is recorded by size and hash


class Journal:
    """Lines of JSON: `{t, process, dir: in|out|note, line}`; a long line has `size` and `sha256` instead.

    `before` has the records of earlier processes with this journal.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._process = process_identity()
        self.before = list(read_journal(path))
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, direction: str, line: bytes) -> None:
        record: Json = {"t": time.time(), "process": self._process, "dir": direction}
        if len(line) > MAX_LINE_BYTES:
            import hashlib

            record |= {"size": len(line), "sha256": hashlib.sha256(line).hexdigest()}
        else:
            record["line"] = line.decode("utf-8", "surrogateescape")
        os.write(self._fd, json.dumps(record).encode() + b"\n")
        os.fdatasync(self._fd)


def read_journal(path: str | os.PathLike[str]) -> Iterator[Json]:
    """Yield the complete records: a killed agent may have written a part of the last one."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


def message_of(record: Json) -> Json:
    """Return the message of a record, or {} if its line is not a message."""
    try:
        message = json.loads(record.get("line", ""))
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def prompts_in(path: str | os.PathLike[str]) -> list[str]:
    """Return the texts of all prompts that the agent received, in order, with repetitions."""
    received = [message_of(record) for record in read_journal(path) if record["dir"] == "in"]
    return [prompt_text(message) for message in received if message.get("method") == "session/prompt"]


def prompt_text(message: Json) -> str:
    return "".join(block.get("text", "") for block in message["params"]["prompt"])


def streamed_in(records: list[Json]) -> list[int]:
    """Return the numbers that `stream` steps sent, in order."""
    sent = (record.get("line", "") for record in records if record["dir"] == "out")
    return [int(number) for line in sent for number in re.findall(r'"<(\d+)>', line)]
