"""Run all benchmarks one after the other, and write their results to docs/benchmarks.md.

    .venv/bin/python bench/everything.py [--quick] [NAME…]

With --quick each benchmark only checks that it works, and nothing is written. With names only these run, and
only their sections of the page are replaced.
"""

import argparse
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
BENCHES = {
    "terminal": "Terminals, compared with other systems",
    "survival": "What survives a killed server, beside other systems",
    "viewers": "Events, from an agent to many viewers",
    "loaded_server": "A loaded server: start, lists, long sessions, end",
    "unauthenticated": "Requests beside clients without a credential",
    "fence": "The fence",
    "search": "Search over a million messages",
    "replay": "Replay of a long session",
    "sandbox": "The sandbox",
    "diff": "The diff of a large repository",
    "cli": "The command line",
    "ui": "The page",
}
HEAD = """# Benchmarks

Results of `make bench`. Recording is on, and CPU and memory are those of server and keeper together. Every
other system is measured in the same run, alternating with Bullpen. Ratios are computed within a round; the
numbers in parentheses are their range. A target is a limit for Bullpen, and a missed target stays here as
missed. Each section has the date of its measurement. Machines differ: run the benchmarks on yours.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Run all benchmarks.")
    parser.add_argument("--quick", action="store_true", help="check that the benchmarks work; write nothing")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(BENCHES)}")
    options = parser.parse_args()
    if unknown := set(options.names) - BENCHES.keys():
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    sections = read_sections()
    failed = []
    for name in options.names or BENCHES:
        print(f"== {name}", flush=True)
        code, output = run(name, ["--quick"] if options.quick else [])
        if code:
            failed.append(name)
        if not options.quick:
            sections[name] = f"{datetime.now(UTC):%Y-%m-%d}\n\n{as_markdown(output)}"
            PAGE.write_text(page(sections))
    if failed:
        print(f"missed a target or failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed and options.quick else 0


def run(name: str, arguments: list[str]) -> tuple[int, str]:
    """Run a benchmark and show its output as it arrives; return its exit code and its output."""
    command = [sys.executable, str(HERE / f"{name}.py"), *arguments]
    printed = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            printed.append(line)
    return process.returncode, "".join(printed)


def as_markdown(output: str) -> str:
    """Return the output as Markdown: tables unchanged, all other text in code blocks."""
    blocks = [block for block in re.split(r"\n{2,}", output.strip()) if block]
    return "\n\n".join(block if block.startswith("|") else f"```text\n{block}\n```" for block in blocks)


def read_sections() -> dict[str, str]:
    """Return the text of each benchmark's section of the page."""
    if not PAGE.exists():
        return {}
    parts = re.split(r"^## (.+)\n+", PAGE.read_text(), flags=re.MULTILINE)[1:]
    names = {title: name for name, title in BENCHES.items()}
    return {
        names[title]: text.strip()
        for title, text in zip(parts[::2], parts[1::2], strict=True)
        if title in names
    }


def page(sections: dict[str, str]) -> str:
    known = [f"\n## {title}\n\n{sections[name]}\n" for name, title in BENCHES.items() if name in sections]
    return HEAD + "".join(known)


if __name__ == "__main__":
    sys.exit(main())
