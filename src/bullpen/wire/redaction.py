"""Replace secrets, found by regular expressions, in exported data."""

import re
from collections.abc import Sequence
from typing import Any

REPLACEMENT = "[redacted]"


class Redaction:
    """Replaces secrets, found by patterns, in exported data; without patterns it changes nothing."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._texts = [re.compile(pattern) for pattern in patterns]
        self._bytes = [re.compile(pattern.encode()) for pattern in patterns]

    @property
    def active(self) -> bool:
        """Whether there are patterns."""
        return bool(self._texts)

    def redact_json(self, value: Any) -> Any:
        """Return a JSON value with secrets replaced in every text; field names stay."""
        if isinstance(value, str):
            for pattern in self._texts:
                value = pattern.sub(REPLACEMENT, value)
            return value
        if isinstance(value, dict):
            return {name: self.redact_json(each) for name, each in value.items()}
        return [self.redact_json(each) for each in value] if isinstance(value, list | tuple) else value

    def redact_bytes(self, data: bytes) -> bytes:
        """Return terminal output with secrets covered by asterisks, so that offsets stay valid."""
        for pattern in self._bytes:
            data = pattern.sub(lambda found: b"*" * len(found[0]), data)
        return data
