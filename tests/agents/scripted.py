"""Run the scripted agent: `scripted.py --journal FILE [--script FILE]`, see `support/scripted_agent`."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # started by its path

from support.scripted_agent import Journal, ScriptedAgent, read_script

if __name__ == "__main__":
    options = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    ScriptedAgent(read_script(options.get("--script")), Journal(options["--journal"])).run()
