"""A real ACP agent that follows a script, misbehaves on demand, and keeps a journal of every line.

`tests/agents/scripted.py --journal FILE [--script FILE]` runs it. A script (JSON or TOML) has, all optional:

    agent     how it differs from a good agent: see `script.Manners`
    start     steps before anything is read
    on        {method: steps} in place of what is usually done for a request
    prompts   [steps, …] for the first, second, … prompt

Without steps for it, a prompt's own text is the script: `[[stream n=100]] [[permission]] [[sleep 0.1]]`.
A step is such a text without brackets, or an object: `{"do": "stream", "n": 100}`; `steps.py` has them all.
It imports nothing of Bullpen, so that both cannot be wrong in the same way.
"""
