"""The part of the client that finds things again, and adds up what was used."""

from .found_shapes import SearchHit, SearchResults, UsageReport
from .rest import RestClient, RestRequest


class SearchCalls:
    """Over all sessions."""

    _rest: RestClient

    async def search(
        self,
        q: str,
        *,
        repo_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        role: str | None = None,
        type: str | None = None,
        after: str | None = None,
        before: str | None = None,
        limit: int = 20,
    ) -> list[SearchHit]:
        """The newest moments with all these words."""
        wanted = {
            "q": q,
            "repoId": repo_id,
            "agentId": agent_id,
            "sessionId": session_id,
            "role": role,
            "type": type,
            "after": after,
            "before": before,
            "limit": str(limit),
        }
        query = {name: value for name, value in wanted.items() if value is not None}
        return (await self._rest.call(SearchResults, RestRequest("GET", "/api/search", query=query))).results

    async def usage(
        self,
        by: str = "day",
        *,
        repo_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        after: str | None = None,
        before: str | None = None,
        utc_offset: int = 0,
        limit: int = 100,
    ) -> UsageReport:
        """What turns used; `utc_offset` in minutes says whose days are meant."""
        wanted = {
            "by": by,
            "repoId": repo_id,
            "agentId": agent_id,
            "sessionId": session_id,
            "after": after,
            "before": before,
            "utcOffset": str(utc_offset),
            "limit": str(limit),
        }
        query = {name: value for name, value in wanted.items() if value is not None}
        return await self._rest.call(UsageReport, RestRequest("GET", "/api/usage", query=query))
