"""A real ACP agent that follows a script, can violate the protocol, and records every line in a journal.

`tests/agents/scripted.py --journal FILE [--script FILE]` runs it. A script is JSON or TOML with these keys,
all optional:

    agent     how it differs from a correct agent: see `script.AgentBehavior`
    start     steps before it reads its input
    on        {method: steps} instead of the default handling of a request
    prompts   [steps, …] for the first, second, … prompt

For a prompt without steps in the script, the text of the prompt has the steps:
`[[stream n=100]] [[permission]] [[sleep 0.1]]`. A step in a script is such a text without brackets, or an
object: `{"do": "stream", "n": 100}`. `steps.py` defines all steps.
The agent imports nothing of Bullpen, so that both do not share an error. It starts in a third of the time of
an agent with asyncio, dataclasses, pathlib and typing.
"""

# A test that imports a part of the agent thus imports and compiles all; an agent in a sandbox cannot.
from .agent import ScriptedAgent
from .journal import Journal
from .script import read_script

__all__ = ["Journal", "ScriptedAgent", "read_script"]
