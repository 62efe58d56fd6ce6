"""A conversation with a real agent, with longer timeouts."""

from typing import Any, ClassVar

from bullpen.domain.conversation_rules import first_option_of_kind
from support.session_client import SessionClient


class RealAgentConversation(SessionClient):
    """A conversation that waits longer: real agents start slowly, especially on a busy machine."""

    seconds: ClassVar[float] = 90.0

    async def decide(self, *kinds: str) -> dict[str, Any]:
        """Answer the open permission with its first option of one of these kinds; return the permission."""
        permission = await self.open_permission()
        option = first_option_of_kind(permission["options"], *kinds)
        assert option is not None, permission
        path = f"{self.path}/permissions/{permission['id']}"
        await self.server.call("POST", path, 204, json={"optionId": option})
        return permission

    async def restart(self) -> str:
        """Restart the agent in its conversation; return how it attached: resume, load or new."""
        last = (await self.events())[-1]["seq"]
        await self.server.call("POST", f"{self.path}/restart", json={"continueConversation": True})
        again = await self.wait_for_event("agent_session", after=last)
        return str(again["data"]["how"])

    async def words(self) -> list[str]:
        return (await self.agent_text()).split()
