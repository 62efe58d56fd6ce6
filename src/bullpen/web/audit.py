"""The audit log: who did what, a JSON object a line, in a file of its own."""

import logging
from pathlib import Path

from .. import clock
from ..logs import PrivateFile, redaction
from ..wire.browser import iso_time
from ..wire.json import encode
from .scopes import Principal

REFUSALS_A_MINUTE = 100  # of strangers; more would only push out of the file what matters
LONGEST_PATH = 500


class AuditLog:
    """Writes at most `REFUSALS_A_MINUTE` lines a minute about requests without a credential.

    One line counts those above.
    """

    def __init__(self, path: Path) -> None:
        self._file = PrivateFile(path)
        self._minute = 0
        self._refusals = 0

    def summarise(self) -> None:
        """Write how many lines an ended minute has left out. To be called with every request."""
        minute = int(clock.monotonic() // 60)
        if minute == self._minute:
            return
        left_out = self._refusals - REFUSALS_A_MINUTE
        self._minute, self._refusals = minute, 0
        if left_out > 0:
            self._line(left_out=left_out)

    def write(self, principal: Principal | None, method: str, path: str, status: int, peer: str) -> None:
        self.summarise()
        if principal is None:
            self._refusals += 1
            if self._refusals > REFUSALS_A_MINUTE:
                return
        self._line(
            principal=principal.id if principal else None,
            name=principal.name if principal else None,
            method=method,
            path=redaction.text(path[:LONGEST_PATH]),
            status=status,
            peer=peer,
        )

    def close(self) -> None:
        self._file.close()

    def _line(self, **values: object) -> None:
        line = encode({"time": iso_time(clock.now_ms()), **values}).decode()
        self._file.handle(logging.makeLogRecord({"msg": line}))
