"""The agent a session without one gets with its first message: which it will be, and which it was."""

import sys

from ..client import Client, Session, Worker
from ..domain.errors import Forbidden
from .find import SessionMatch, find_agent


async def expected(client: Client, session: Session) -> str:
    """The agent the first message will start: the repository's, else the house's."""
    try:
        agents = {each.id: each for each in await client.agents()}
        repositories = await client.repositories() if session.repo_id else []
    except Forbidden:
        return "the default agent"
    chosen = next((each.agent_id for each in repositories if each.id == session.repo_id), None)
    default = next((each.id for each in agents.values() if each.default), None)
    agent = agents.get(chosen or default or "")
    return f"{agent.name} ({agent.id})" if agent else "the default agent"


async def told(client: Client, found: SessionMatch) -> Worker | None:
    """Who got the message; one that was started for it is named to the person, who did not choose it."""
    if found.agent is not None:
        return found.agent
    agent = await find_agent(client, found.session.id)
    if agent is not None:
        why = f"{found.name} had no agent; it now has {agent.name} ({agent.agent_id})"
        print(f"bullpen: {why}", file=sys.stderr)
    return agent
