"""Leaving secrets out of what goes to others, by patterns."""

import re
from collections.abc import Sequence
from typing import Any

INSTEAD = "[redacted]"


class Redaction:
    """With no pattern everything stays as it is."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._texts = [re.compile(pattern) for pattern in patterns]
        self._bytes = [re.compile(pattern.encode()) for pattern in patterns]

    @property
    def active(self) -> bool:
        return bool(self._texts)

    def value(self, value: Any) -> Any:
        """A JSON value with every text in it cleared; names of fields stay."""
        if isinstance(value, str):
            for pattern in self._texts:
                value = pattern.sub(INSTEAD, value)
            return value
        if isinstance(value, dict):
            return {name: self.value(each) for name, each in value.items()}
        return [self.value(each) for each in value] if isinstance(value, list | tuple) else value

    def data(self, data: bytes) -> bytes:
        """Bytes of a terminal, as many as before: offsets stay what they are."""
        for pattern in self._bytes:
            data = pattern.sub(lambda found: b"*" * len(found[0]), data)
        return data
