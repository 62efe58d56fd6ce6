"""Run the scripted agent: `scripted.py --journal FILE [--script FILE]`, see `support/scripted_agent`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the server starts it by its path


def main() -> None:
    sys.modules["ssl"] = None  # type: ignore[assignment] # asyncio runs without it, and starts sooner
    import asyncio

    from support.scripted_agent.agent import ScriptedAgent
    from support.scripted_agent.journal import Journal
    from support.scripted_agent.script import read_script

    options = {name: Path(value) for name, value in zip(sys.argv[1::2], sys.argv[2::2], strict=True)}
    agent = ScriptedAgent(read_script(options.get("--script")), Journal(options["--journal"]))
    asyncio.run(agent.run())


if __name__ == "__main__":
    main()
