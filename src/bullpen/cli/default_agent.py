"""Name the agent that the first message starts in a session without an agent."""

import sys

from ..client import Client, Session, Worker
from ..domain.errors import Forbidden
from .find import SessionMatch, find_agent


async def expected_agent(client: Client, session: Session) -> str:
    """Return the name of the agent that the first message will start, of the repository or the server."""
    try:
        agents = {each.id: each for each in await client.agents()}
        repositories = await client.repositories() if session.repo_id else []
    except Forbidden:
        return "the default agent"
    chosen = next((each.agent_id for each in repositories if each.id == session.repo_id), None)
    default = next((each.id for each in agents.values() if each.default), None)
    agent = agents.get(chosen or default or "")
    return f"{agent.name} ({agent.id})" if agent else "the default agent"


async def receiving_agent(client: Client, found: SessionMatch) -> Worker | None:
    """Return the agent that received a message; None if the session has none.

    Tell the user if the message started the agent.
    """
    if found.agent is not None:
        return found.agent
    agent = await find_agent(client, found.session.id)
    if agent is not None:
        notice = f"{found.name} had no agent; it now has {agent.name} ({agent.agent_id})"
        print(f"bullpen: {notice}", file=sys.stderr)
    return agent
