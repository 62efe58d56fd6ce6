"""Keys of workers: each run of an agent in a terminal gets one, to report its activity and ask questions.

A key is derived from the server's secret, so it is not stored, and it stays valid after a restart.
"""

import hmac
import re

from .derived_secrets import DerivedSecrets, SecretKind

URL, TOKEN = "BULLPEN_ACTIVITY_URL", "BULLPEN_ACTIVITY_TOKEN"
KEY_PATTERN = re.compile(
    rf"{SecretKind.WORKER}[A-Za-z0-9_-]{{43}}\.(?P<worker_id>[A-Za-z0-9_-]{{1,128}})\.(?P<run>[0-9]{{1,10}})"
)


class WorkerKeys:
    """Makes and checks keys of workers. `url` is the URL of the server for programs on this machine."""

    def __init__(self, secrets: DerivedSecrets, url: str) -> None:
        self._secrets = secrets
        self._url = url

    def environment(self, worker_id: str, run: int) -> dict[str, str]:
        """Return the environment variables for the process of a run."""
        return {URL: f"{self._url}/api/workers/{worker_id}/activity", TOKEN: self._make(worker_id, run)}

    def run_of(self, token: str) -> tuple[str, int] | None:
        """Return the worker id and run of a key, or None if the key is not valid."""
        match = KEY_PATTERN.fullmatch(token)
        if match is None:
            return None
        worker_id, run = match["worker_id"], int(match["run"])
        return (worker_id, run) if hmac.compare_digest(self._make(worker_id, run), token) else None

    def _make(self, worker_id: str, run: int) -> str:
        """Return the key of a run."""
        return f"{self._secrets.make(SecretKind.WORKER, f'{worker_id}.{run}')}.{worker_id}.{run}"
