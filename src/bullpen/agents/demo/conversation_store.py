"""Store each conversation in a file, so that another process of the demo agent can continue it."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...domain.ids import is_safe_id


@dataclass
class DemoConversation:
    """A conversation: its directory, its settings, and its messages as ACP updates."""

    id: str
    cwd: str
    mode: str = "ask"
    pace: str = "fast"
    trusted: bool = False  # the user answered a permission request with "always"
    turns: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)


class ConversationStore:
    """The stored conversations in one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self, id: str) -> DemoConversation | None:
        """Return the stored conversation with this id; None if there is none, or its file is damaged."""
        if not is_safe_id(id):
            return None
        try:
            return DemoConversation(**json.loads(self._file(id).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def save(self, session: DemoConversation) -> None:
        """Store a conversation atomically."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = self._file(session.id).with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(asdict(session)))
        new.rename(self._file(session.id))

    def _file(self, id: str) -> Path:
        """Return the path of the file that stores a conversation."""
        return self._directory / f"{id}.json"
