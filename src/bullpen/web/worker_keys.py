"""The key an agent in a terminal is given: with it a run of a worker says what it does, and nothing else.

It is made from the house's secret, so that none has to be stored and it still opens after a restart.
"""

import hmac
import re

from .derived_secrets import DerivedSecrets, SecretKind

URL, TOKEN = "BULLPEN_ACTIVITY_URL", "BULLPEN_ACTIVITY_TOKEN"
FORM = re.compile(
    rf"{SecretKind.WORKER}[A-Za-z0-9_-]{{43}}\.(?P<worker_id>[A-Za-z0-9_-]{{1,128}})\.(?P<run>[0-9]{{1,10}})"
)


class WorkerKeys:
    """`url` is where the server is found from this machine."""

    def __init__(self, mint: DerivedSecrets, url: str) -> None:
        self._mint = mint
        self._url = url

    def environment(self, worker_id: str, run: int) -> dict[str, str]:
        """What the process of a run finds in its environment."""
        return {URL: f"{self._url}/api/workers/{worker_id}/activity", TOKEN: self._make(worker_id, run)}

    def run_of(self, token: str) -> tuple[str, int] | None:
        """The worker and the run a key was made for; None when it is not one of ours."""
        form = FORM.fullmatch(token)
        if form is None:
            return None
        worker_id, run = form["worker_id"], int(form["run"])
        return (worker_id, run) if hmac.compare_digest(self._make(worker_id, run), token) else None

    def _make(self, worker_id: str, run: int) -> str:
        return f"{self._mint.make(SecretKind.WORKER, f'{worker_id}.{run}')}.{worker_id}.{run}"
