"""JSON shapes of search results."""

from .shapes import Shape


class SearchHitShape(Shape):
    session_id: str
    session_title: str
    repo_id: str | None
    worker_id: str | None
    agent_id: str | None
    seq: int
    type: str
    role: str
    timestamp: str
    run: int | None
    offset: int | None
    snippet: str


class SearchShape(Shape):
    results: list[SearchHitShape]
