"""A worker's own voice: asks a person something with the key its run was given, and waits for the answer."""

from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from .. import clock
from ..domain.errors import Invalid
from .discovery import ServerDiscovery
from .rest import RestClient, RestRequest
from .talk_shapes import AskedQuestion, AskedQuestionState

_A_WAIT = 10.0  # seconds: a request that hangs longer looks like a dead server


class QuestionClient:
    """A question is known by its ticket, which says where in the log it stands."""

    def __init__(self, url: str, path: str, token: str) -> None:
        self._rest = RestClient(ServerDiscovery.at(url, token), 30.0)
        self._path = path

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> "QuestionClient | None":
        """What the process of a worker finds in its environment; None outside one."""
        url, token = env.get("BULLPEN_ACTIVITY_URL"), env.get("BULLPEN_ACTIVITY_TOKEN")
        if not url or not token:
            return None
        parts = urlsplit(url)
        return cls(f"{parts.scheme}://{parts.netloc}", parts.path.removesuffix("/activity"), token)

    async def close(self) -> None:
        await self._rest.close()

    async def ask(self, message: str, options: list[str]) -> str:
        """The ticket of the question."""
        body = {"message": message, "options": options}
        asked = await self._rest.call(AskedQuestion, RestRequest("POST", f"{self._path}/questions", body))
        return f"{asked.seq}.{asked.id}"

    async def answer(self, ticket: str, seconds: float) -> AskedQuestionState:
        """What has become of a question, after so many seconds at most."""
        seq, dot, id = ticket.partition(".")
        if not (seq.isascii() and seq.isdecimal() and dot):
            raise Invalid(f"{ticket} is no ticket of a question")
        deadline = clock.monotonic() + seconds
        while True:
            left = max(0.0, deadline - clock.monotonic())
            query = {"seq": seq, "wait": f"{min(left, _A_WAIT):g}"}
            path = f"{self._path}/questions/{quote(id, safe='')}"
            state = await self._rest.call(AskedQuestionState, RestRequest("GET", path, query=query))
            if state.status != "pending" or left <= _A_WAIT:
                return state
