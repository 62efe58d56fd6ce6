"""Measure the page with a long session and a fast agent in Chromium.

    .venv/bin/python bench/ui.py [--quick]

A session of 20,000 events is opened until its first entries are drawn. Then its agent streams 200 pieces of
Markdown a second. The time of a frame is measured from its beginning until it is drawn; it is the work of the
page, without the pauses between frames.
"""

import argparse
import json
import os
import platform
import shutil
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from harness.report import Results, Row, Target, table, values_table, verdicts
from systems.bullpen import Bullpen

OURS = "Bullpen"
SCRIPTED = Path(__file__).parents[1] / "tests" / "agents" / "scripted.py"
CALLS, QUICK_CALLS = 10_000, 1_000  # each is two events
PIECES, QUICK_PIECES = 3_000, 600
WORDS = (
    "Some **bold** text, ",
    "`code` and more, ",
    "so that a line is long.\n\n",
    "- an item\n",
    "1. one\n\n",
)

ROWS = [
    Row("shown", "first entries shown", "ms", [Target(1000)]),
    Row("frame", "a frame at 200 pieces/s", "ms", [Target(16)]),
    Row("memory", "memory of the page", "MB", [Target(250)]),
]
EXPLAINING = [
    Row("frame95", "the slowest 5 % of frames", "ms", compared=False),
    Row("heap", "memory of JavaScript", "MB", compared=False),
    Row("entries", "entries in the page", "", compared=False),
]

WATCH = """
    window.shownAt = new Promise((resolve) => {
      const drawn = new MessageChannel()
      drawn.port1.onmessage = () => resolve(performance.now())
      new MutationObserver((_, observer) => {
        if (!document.querySelector('[data-key]')) return
        requestAnimationFrame(() => drawn.port2.postMessage(0))
        observer.disconnect()
      }).observe(document, { childList: true, subtree: true })
    })
"""
TIME_FRAMES = """() => {
    window.frames_ = []
    const channel = new MessageChannel()
    let began = 0
    channel.port1.onmessage = () => window.frames_.push(performance.now() - began)
    const frame = () => {
      began = performance.now()
      channel.port2.postMessage(0)
      requestAnimationFrame(frame)
    }
    requestAnimationFrame(frame)
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the page with a long session and a fast agent.")
    parser.add_argument(
        "--quick", action="store_true", help="a shorter session, to check that the benchmark works"
    )
    quick = parser.parse_args().quick
    results: Results = defaultdict(lambda: defaultdict(list))
    with Bullpen() as system, sync_playwright() as playwright:
        session = long_session(system, QUICK_CALLS if quick else CALLS, QUICK_PIECES if quick else PIECES)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for key, figure in measure(system, browser, session).items():
            results[key][OURS].append(figure)
        browser.close()
    print_report(results)


def long_session(system: Bullpen, calls: int, pieces: int) -> str:
    """Create a session with this many tool calls, whose agent streams this many pieces at its next prompt."""
    work = [{"do": "tool", "title": f"work {n}", "rawInput": {"command": f"make {n}"}} for n in range(calls)]
    talk: list[dict[str, Any]] = []
    for n in range(pieces):
        talk += [{"do": "chunk", "text": WORDS[n % len(WORDS)]}, {"do": "sleep", "text": "0.004"}]
    script = system.home / "long.json"
    script.write_text(json.dumps({"prompts": [work, talk]}))
    command = [
        sys.executable,
        str(SCRIPTED),
        "--journal",
        str(system.home / "long.journal"),
        "--script",
        str(script),
    ]
    system.call("PUT", "/api/agents/long", {"name": "Long", "kind": "acp", "command": command})
    session = str(system.call("POST", "/api/sessions", {"agentId": "long"})["id"])
    prompt(system, session, "work")
    wait_for_turn_end(system, session, 1)
    return session


def prompt(system: Bullpen, session: str, text: str) -> None:
    system.call("POST", f"/api/sessions/{session}/prompt", {"text": text})


def wait_for_turn_end(system: Bullpen, session: str, count: int) -> None:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        ends = system.call("GET", f"/api/sessions/{session}/events?types=turn_end")["events"]
        if len(ends) >= count:
            return
        time.sleep(0.2)
    raise TimeoutError("the turn did not end")


def measure(system: Bullpen, browser: Browser, session: str) -> dict[str, float]:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.goto(system.call("POST", "/api/login-codes", {})["url"])
    page.get_by_role("button", name="New session").wait_for()
    page.close()
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(f"http://127.0.0.1:{system.port}/#/session/{session}")
    page.locator("[data-key]").last.wait_for(timeout=60_000)
    figures = {"shown": float(page.evaluate("window.shownAt"))}
    page.evaluate(TIME_FRAMES)
    prompt(system, session, "talk")
    wait_for_turn_end(system, session, 2)
    frames: list[float] = page.evaluate("window.frames_")
    figures |= {"frame": median(frames), "frame95": quantiles(frames, n=20)[-1]}
    return figures | memory_of(page) | {"entries": page.locator("[data-key]").count()}


def memory_of(page: Page) -> dict[str, float]:
    """Return the private memory of the page's process, and the JavaScript part of it."""
    heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
    own_process = psutil.Process()
    pages = [
        each for each in own_process.children(recursive=True) if "--type=renderer" in " ".join(each.cmdline())
    ]
    return {"memory": max(each.memory_full_info().uss for each in pages) / 1e6, "heap": heap}


def print_report(results: Results) -> None:
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end\n")
    print(values_table([*ROWS, *EXPLAINING], [OURS], results))
    print("\n" + table(["", "target"], [[row.title, verdicts(row, OURS, results)] for row in ROWS]))


if __name__ == "__main__":
    main()
