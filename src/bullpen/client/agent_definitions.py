"""Provide the client methods that list agents, and that add, replace and remove their definitions."""

from typing import TYPE_CHECKING
from urllib.parse import quote

from .conversation_shapes import Agent, AgentList
from .rest import RestClient, RestRequest

if TYPE_CHECKING:
    from ..domain.agents import AgentDefinition


class AgentDefinitionCalls:
    """The methods of `Client` about the agents of the server. A change needs a token with scope admin."""

    _rest: RestClient

    async def agents(self) -> list[Agent]:
        """Return every agent that is defined, installed or not."""
        return (await self._rest.call(AgentList, RestRequest("GET", "/api/agents"))).agents

    async def add_agent(self, definition: "AgentDefinition", *, key: str | None = None) -> Agent:
        """Add an agent; raise Conflict if there is one with this id."""
        return await self._rest.call(Agent, RestRequest("POST", "/api/agents", definition, key=key))

    async def replace_agent(self, definition: "AgentDefinition") -> Agent:
        """Add an agent, or replace the definition with the same id."""
        return await self._rest.call(Agent, RestRequest("PUT", _agent(definition.id), definition))

    async def remove_agent(self, agent_id: str) -> None:
        """Remove an agent that was added; a built-in agent with this id is used again."""
        await self._rest.send(RestRequest("DELETE", _agent(agent_id)))


def _agent(agent_id: str) -> str:
    """Return the URL path of an agent."""
    return f"/api/agents/{quote(agent_id, safe='')}"
