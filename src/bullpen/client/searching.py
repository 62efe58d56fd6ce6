"""The part of the client that finds things again."""

from .rest import Request, Rest
from .shapes import Found, SearchResults


class Searching:
    """Full text over all sessions."""

    _rest: Rest

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
    ) -> list[Found]:
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
        return (await self._rest.call(SearchResults, Request("GET", "/api/search", query=query))).results
