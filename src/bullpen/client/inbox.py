"""The part of the client about what waits for a person, and about rules that answer in their place."""

from typing import Any
from urllib.parse import quote

from .rest import RestClient, RestRequest
from .talk_shapes import Inbox, InboxItem, Rule, RuleList


class InboxCalls:
    """What waits over all sessions."""

    _rest: RestClient

    async def inbox(self) -> list[InboxItem]:
        """The most urgent first, then the oldest."""
        return (await self._rest.call(Inbox, RestRequest("GET", "/api/inbox"))).items

    async def mark_seen(self, session_id: str, seq: int | None = None, *, key: str | None = None) -> None:
        """What failed or finished in a session, up to an event, has been looked at."""
        body = {} if seq is None else {"seq": seq}
        path = f"/api/sessions/{quote(session_id, safe='')}/seen"
        await self._rest.order(RestRequest("POST", path, body, key=key))

    async def rules(self) -> list[Rule]:
        """In the order they are tried."""
        return (await self._rest.call(RuleList, RestRequest("GET", "/api/rules"))).rules

    async def add_rule(
        self,
        name: str,
        agent_id: str,
        kind: str,
        answer: str,
        *,
        path: str | None = None,
        command: str | None = None,
        key: str | None = None,
    ) -> Rule:
        body: dict[str, Any] = {"name": name, "agentId": agent_id, "kind": kind, "answer": answer}
        body |= {"path": path} if path is not None else {}
        body |= {"command": command} if command is not None else {}
        return await self._rest.call(Rule, RestRequest("POST", "/api/rules", body, key=key))

    async def remove_rule(self, name: str) -> None:
        await self._rest.order(RestRequest("DELETE", f"/api/rules/{quote(name, safe='')}"))
