"""A terminal agent for tests: it draws, asks, rings, writes or is silent as its prompts say.

`tui.py --journal FILE [--plain] [--slow] …`; a prompt is text with steps in it: [[work 0.5]] [[ask]] [[bell]]
[[notify WORDS]] [[write 0.5]] [[hush 0.5]] [[claim idle]] [[exit 3]]; [[work key]] and [[write key]] go on
until a key is pressed. The journal has the received input.
"""

import json
import math
import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # started by its path

from support.process_identity import process_identity

STEP = re.compile(r"\[\[(\w+) ?([^\]]*)\]\]")
KEY = re.compile(rb"\x1b\[200~(.*?)\x1b\[201~|(\x1b\[I|\x1b\[O)|(\x1b)(?!\[)|([^\x1b])", re.DOTALL)
FRAME_SECONDS = 0.05
RUN = os.environ.get("BULLPEN_CHILD", "").partition("/")[2]  # the worker and the number of its run
SLOW_READ_SECONDS = 1.0  # how long a slow agent waits before it reads typed keys


class Journal:
    def __init__(self, path: str) -> None:
        self._path = path

    def add(self, kind: str, value: object) -> None:
        with open(self._path, "a") as file:
            file.write(json.dumps({"process": process_identity(), "run": RUN, kind: value}) + "\n")


class Tui:
    """The agent: one loop runs the steps and reads keys, as in a real terminal agent."""

    def __init__(self, journal: Journal, plain: bool, slow: bool) -> None:
        self._journal = journal
        self._plain = plain  # supports no bracketed paste, and draws nothing
        self._slow = slow  # takes an Enter that it reads together with a text for a newline
        self._answers: list[str] = []
        self._typed = ""
        self._bytes = b""
        self._interrupted = False

    def run(self) -> None:
        if not self._plain:
            self._put("\x1b[?2004h")
        while True:
            self._draw("", "> " + self._typed.replace("\n", "\r\n  "))
            keys = self._read_keys(None)
            for key in keys:
                if key == "\r" and self._slow and len(keys) > 1:
                    self._typed += "\n"
                elif key == "\r" and self._typed:
                    self._prompt()
                elif key not in ("\x1b", "\r"):
                    self._typed += key

    def _prompt(self) -> None:
        text, self._typed, self._interrupted = self._typed, "", False
        self._journal.add("prompt", text)
        self._answers.append(f"you said {len(text)} letters")
        for step, word in STEP.findall(text):
            if self._interrupted:
                break
            getattr(self, f"_{step}")(word)
        self._journal.add("done", "interrupted" if self._interrupted else "end")

    def _work(self, until: str) -> None:
        for now in self._frames(until):
            self._draw(f"Working {now:.2f} (esc to interrupt)")

    def _ask(self, words: str) -> None:
        self._draw(f"Allow this? (y/n) {words}")
        while True:
            for key in self._read_keys(None):
                if key in "yn\x1b":
                    self._journal.add("answer", key)
                    self._interrupted = key == "\x1b"
                    return

    def _write(self, until: str) -> None:
        for now in self._frames(until):
            self._put(f"a line of many words at {now}\r\n")

    def _frames(self, until: str) -> Iterator[float]:
        """Yield the time of each frame for some seconds or until a key, or until the user interrupts."""
        end = time.monotonic() + (math.inf if until == "key" else float(until or 0.5))
        keys: list[str] = []
        while time.monotonic() < end and not self._interrupted and not (keys and until == "key"):
            yield time.monotonic()
            keys = self._read_keys(FRAME_SECONDS)
            self._interrupted = "\x1b" in keys

    def _hush(self, seconds: str) -> None:
        self._draw("")
        time.sleep(float(seconds or 0.5))

    def _bell(self, _: str) -> None:
        self._draw("something is up")
        self._put("\x07")
        list(self._read_keys(None))

    def _notify(self, words: str) -> None:
        self._draw("something is up")
        self._put(f"\x1b]9;{words}\x07")
        list(self._read_keys(None))

    def _claim(self, words: str) -> None:
        import urllib.request  # takes 60 ms

        activity, _, why = words.partition(" ")
        body = json.dumps({"activity": activity, "why": why or None}).encode()
        request = urllib.request.Request(
            os.environ["BULLPEN_ACTIVITY_URL"],
            body,
            {
                "Authorization": f"Bearer {os.environ['BULLPEN_ACTIVITY_TOKEN']}",
                "Content-Type": "application/json",
            },
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request) as answer:
            self._journal.add("claimed", answer.status)
        list(self._read_keys(None))

    def _exit(self, code: str) -> None:
        sys.exit(int(code or 0))

    def _read_keys(self, seconds: float | None) -> list[str]:
        """Return the pressed keys, a paste as one key. Wait for keys at most so many seconds."""
        return list(self._parse_keys(seconds))

    def _parse_keys(self, seconds: float | None) -> Iterator[str]:
        if select.select([0], [], [], seconds)[0]:
            time.sleep(SLOW_READ_SECONDS if self._slow else 0)
            self._bytes += os.read(0, 65536)
        half = rb"\x1b\[200~(?!.*\x1b\[201~)|\x1b\[?\d*\Z"
        while re.search(half, self._bytes, re.DOTALL):
            if not select.select([0], [], [], FRAME_SECONDS)[0]:
                break
            self._bytes += os.read(0, 65536)
        if b"\x1b[200~" in self._bytes and b"\x1b[201~" not in self._bytes:
            return
        data, self._bytes = self._bytes, b""
        while data and (found := KEY.match(data)):
            pasted, _, escape, letter = found.groups()
            if pasted is not None:
                yield pasted.decode()
            elif escape:
                yield "\x1b"
            elif letter:
                size = 1 if letter[0] < 0x80 else 2 if letter[0] < 0xE0 else 3 if letter[0] < 0xF0 else 4
                yield data[:size].decode(errors="replace")
                data = data[size:]
                continue
            data = data[found.end() :]

    def _draw(self, status: str, prompt: str = "") -> None:
        """Draw the whole screen."""
        if self._plain:
            return
        lines = [*self._answers[-3:], status, prompt]
        self._put("\x1b[H\x1b[2J" + "\r\n".join(lines))

    def _put(self, text: str) -> None:
        os.write(1, text.encode())


def main() -> None:
    options = sys.argv[1:]
    journal = Journal(options[options.index("--journal") + 1])
    before = termios.tcgetattr(0)
    tty.setraw(0)
    journal.add("started", options)  # keys that were typed before are lost
    try:
        Tui(journal, "--plain" in options, "--slow" in options).run()
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


if __name__ == "__main__":
    main()
