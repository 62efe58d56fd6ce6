"""Run the scripted agent: `scripted.py --journal FILE [--script FILE]`, see `support/scripted_agent`."""

import argparse
import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the server starts it by its path

from support.scripted_agent.agent import ScriptedAgent
from support.scripted_agent.journal import Journal
from support.scripted_agent.script import read_script


async def _run(script: Path | None, journal: Path) -> None:
    await ScriptedAgent(read_script(script), Journal(journal)).run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--script", type=Path)
    options = parser.parse_args()
    asyncio.run(_run(options.script, options.journal))


if __name__ == "__main__":
    main()
