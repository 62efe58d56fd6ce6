"""The key an agent in a terminal is given: with it a run of a worker says what it does, and nothing else.

It is made from the house's secret, so that none has to be stored and it still opens after a restart.
"""

import hmac

from .mint import Kind, Mint

URL, TOKEN = "BULLPEN_ACTIVITY_URL", "BULLPEN_ACTIVITY_TOKEN"


class WorkerKeys:
    """`url` is where the server is found from this machine."""

    def __init__(self, mint: Mint, url: str) -> None:
        self._mint = mint
        self._url = url

    def environment(self, worker_id: str, run: int) -> dict[str, str]:
        """What the process of a run finds in its environment."""
        return {URL: f"{self._url}/api/workers/{worker_id}/activity", TOKEN: self._make(worker_id, run)}

    def run_of(self, token: str) -> tuple[str, int] | None:
        """The worker and the run a key was made for; None when it is not one of ours."""
        if not token.startswith(Kind.WORKER):
            return None
        match token.split("."):
            case [_, worker_id, run] if run.isascii() and run.isdecimal():
                known = self._make(worker_id, int(run))
                same = hmac.compare_digest(known.encode(), token.encode())
                return (worker_id, int(run)) if same else None
            case _:
                return None

    def _make(self, worker_id: str, run: int) -> str:
        return f"{self._mint.make(Kind.WORKER, f'{worker_id}.{run}')}.{worker_id}.{run}"
