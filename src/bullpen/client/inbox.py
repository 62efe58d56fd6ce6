"""Provide the client methods for the inbox, and for rules that answer permissions automatically."""

from typing import Any
from urllib.parse import quote

from .conversation_shapes import Inbox, InboxItem, Rule, RuleList
from .rest import RestClient, RestRequest


class InboxCalls:
    """The methods of `Client` about the inbox and the permission rules."""

    _rest: RestClient

    async def inbox(self) -> list[InboxItem]:
        """Return what waits for a person in all sessions: the most urgent first, then the oldest."""
        return (await self._rest.call(Inbox, RestRequest("GET", "/api/inbox"))).items

    async def mark_seen(self, session_id: str, seq: int | None = None, *, key: str | None = None) -> None:
        """Take failures and finished turns of a session off the inbox: those up to event `seq`, or all."""
        body = {} if seq is None else {"seq": seq}
        path = f"/api/sessions/{quote(session_id, safe='')}/seen"
        await self._rest.send(RestRequest("POST", path, body, key=key))

    async def rules(self) -> list[Rule]:
        """Return the permission rules in the order in which they are tried."""
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
        """Add a rule that answers (`allow` or `reject`) an agent's permission requests for a kind of tool."""
        body: dict[str, Any] = {"name": name, "agentId": agent_id, "kind": kind, "answer": answer}
        body |= {"path": path} if path is not None else {}
        body |= {"command": command} if command is not None else {}
        return await self._rest.call(Rule, RestRequest("POST", "/api/rules", body, key=key))

    async def remove_rule(self, name: str) -> None:
        """Remove a rule that was added."""
        await self._rest.send(RestRequest("DELETE", f"/api/rules/{quote(name, safe='')}"))
