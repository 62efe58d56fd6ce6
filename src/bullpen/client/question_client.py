"""Ask a person a question from inside a worker's process, and wait for the answer."""

from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from .. import clock
from ..domain.errors import Invalid
from .conversation_shapes import AskedQuestion, AskedQuestionState
from .discovery import ServerDiscovery
from .rest import RestClient, RestRequest

_MAX_POLL_SECONDS = 10.0  # a longer request looks like a dead server


class QuestionClient:
    """A client that asks questions with the credential of a worker's run. A ticket identifies a question."""

    def __init__(self, url: str, path: str, token: str) -> None:
        self._rest = RestClient(ServerDiscovery.at(url, token), 30.0)
        self._path = path

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> "QuestionClient | None":
        """Return the client of the worker that this process belongs to; None outside a worker."""
        url, token = env.get("BULLPEN_ACTIVITY_URL"), env.get("BULLPEN_ACTIVITY_TOKEN")
        if not url or not token:
            return None
        parts = urlsplit(url)
        return cls(f"{parts.scheme}://{parts.netloc}", parts.path.removesuffix("/activity"), token)

    async def close(self) -> None:
        """Close the connections to the server."""
        await self._rest.close()

    async def ask(self, message: str, options: list[str]) -> str:
        """Ask a question and return its ticket."""
        body = {"message": message, "options": options}
        asked = await self._rest.call(AskedQuestion, RestRequest("POST", f"{self._path}/questions", body))
        return f"{asked.seq}.{asked.id}"

    async def report_activity(self, activity: str, why: str | None = None) -> None:
        """Report that the agent of this run is `active`, `asking` or `idle`."""
        await self._rest.send(
            RestRequest("POST", f"{self._path}/activity", {"activity": activity, "why": why})
        )

    async def wait_for_answer(self, ticket: str, seconds: float) -> AskedQuestionState:
        """Return the state of a question once it is answered, or after `seconds`.

        Raise Invalid if the ticket is malformed.
        """
        seq, dot, id = ticket.partition(".")
        if not (seq.isascii() and seq.isdecimal() and dot):
            raise Invalid(f"{ticket} is not a ticket of a question")
        deadline = clock.monotonic() + seconds
        while True:
            left = max(0.0, deadline - clock.monotonic())
            query = {"seq": seq, "wait": f"{min(left, _MAX_POLL_SECONDS):g}"}
            path = f"{self._path}/questions/{quote(id, safe='')}"
            state = await self._rest.call(AskedQuestionState, RestRequest("GET", path, query=query))
            if state.status != "pending" or left <= _MAX_POLL_SECONDS:
                return state
