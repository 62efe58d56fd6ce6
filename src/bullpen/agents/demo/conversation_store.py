"""What the agent remembers of a session: one file each, so that another process can go on with it."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...domain.ids import is_safe_id


@dataclass
class DemoConversation:
    """A conversation: where it works, how it is set, and what was said."""

    id: str
    cwd: str
    mode: str = "ask"
    pace: str = "fast"
    trusted: bool = False  # somebody said always
    turns: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)


class ConversationStore:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def recall(self, id: str) -> DemoConversation | None:
        """The session of that name, if there is one."""
        if not is_safe_id(id):
            return None
        try:
            return DemoConversation(**json.loads(self._file(id).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def keep(self, session: DemoConversation) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = self._file(session.id).with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(asdict(session)))
        new.rename(self._file(session.id))

    def _file(self, id: str) -> Path:
        return self._directory / f"{id}.json"
