"""Provide the client methods for searches and usage reports."""

from .rest import RestClient, RestRequest
from .search_shapes import SearchHit, SearchResults, UsageReport


class SearchCalls:
    """The methods of `Client` that search sessions and report usage."""

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
        """Return the newest events that contain all words of `q`."""
        parameters = {
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
        query = {name: value for name, value in parameters.items() if value is not None}
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
        """Return the tokens and cost of turns, grouped by day, turn, session, repository or agent.

        Days begin at midnight in the time zone `utc_offset`, in minutes.
        """
        parameters = {
            "by": by,
            "repoId": repo_id,
            "agentId": agent_id,
            "sessionId": session_id,
            "after": after,
            "before": before,
            "utcOffset": str(utc_offset),
            "limit": str(limit),
        }
        query = {name: value for name, value in parameters.items() if value is not None}
        return await self._rest.call(UsageReport, RestRequest("GET", "/api/usage", query=query))
