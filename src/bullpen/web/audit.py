"""The audit log: a file with one JSON object for each change, refusal, and opened or closed socket."""

import logging
from pathlib import Path

from .. import clock
from ..logs import PrivateFile, redaction
from ..wire.browser import iso_time
from ..wire.json import encode
from .scopes import Principal

MAX_REFUSALS_PER_MINUTE = 100  # without a credential; more would fill the file with noise
MAX_PATH_LENGTH = 500


class AuditLog:
    """Writes lines about requests to a file.

    Lines about requests without a credential are limited; one line a minute counts those left out.
    """

    def __init__(self, path: Path) -> None:
        self._file = PrivateFile(path)
        self._minute = 0
        self._refusals = 0

    def write_summary(self) -> None:
        """Write how many lines an ended minute has left out. Called with every request."""
        minute = int(clock.monotonic() // 60)
        if minute == self._minute:
            return
        left_out = self._refusals - MAX_REFUSALS_PER_MINUTE
        self._minute, self._refusals = minute, 0
        if left_out > 0:
            self._line(left_out=left_out)

    def write(self, principal: Principal | None, method: str, path: str, status: int, peer: str) -> None:
        """Write a line about a request."""
        self.write_summary()
        if principal is None:
            self._refusals += 1
            if self._refusals > MAX_REFUSALS_PER_MINUTE:
                return
        self._line(
            principal=principal.id if principal else None,
            name=principal.name if principal else None,
            method=method,
            path=redaction.text(path[:MAX_PATH_LENGTH]),
            status=status,
            peer=peer,
        )

    def close(self) -> None:
        self._file.close()

    def _line(self, **values: object) -> None:
        """Write a line with the current time."""
        line = encode({"time": iso_time(clock.now_ms()), **values}).decode()
        self._file.handle(logging.makeLogRecord({"msg": line}))
