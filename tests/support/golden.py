"""Golden files of the fold. The fold of the server and the one of the page must give the same results.

`python tests/support/golden.py` writes the results that the server's fold gives now.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `python tests/support/golden.py`

from bullpen.domain.conversation_state import Conversation
from bullpen.domain.queue import QueueItem
from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.wire.browser import iso_time, read_event, session_json

GOLDEN = Path(__file__).parents[1] / "golden"


def paths() -> list[Path]:
    return sorted(GOLDEN.glob("*.json"))


def snapshot_of(story: dict[str, Any]) -> Snapshot:
    return fold_all(Snapshot(id=story["id"]), map(read_event, story["events"]))


def expected_state(story: dict[str, Any]) -> dict[str, Any]:
    """Return the session as the server sends it, and the queue and conversations as the page folds them."""
    snapshot = snapshot_of(story)
    conversations = {id: _conversation(each) for id, each in snapshot.conversations.items()}
    queue = {"items": [_item(item) for item in snapshot.queue.items], "paused": snapshot.queue.paused}
    return {"snapshot": session_json(snapshot), "page": {"queue": queue, "conversations": conversations}}


def _item(item: QueueItem) -> dict[str, Any]:
    return {
        "id": item.id,
        "message": item.message,
        "image_ids": list(item.image_ids),
        "queued_at": iso_time(item.queued_at),
        "title": item.title,
        "ownTitle": item.own_title,
        "scheduled_time": None if item.scheduled_time is None else iso_time(item.scheduled_time),
        "state": item.state,
        "workerId": item.worker_id,
        "urgent": item.urgent,
    }


def _conversation(state: Conversation) -> dict[str, Any]:
    turn, session, usage = state.turn, state.session, state.usage
    return {
        "turn": turn
        and {"promptId": turn.prompt_id, "since": iso_time(turn.since), "cancelling": turn.cancelling},
        "settings": session
        and {
            "acpSessionId": session.id,
            "modes": session.modes,
            "models": session.models,
            "configOptions": session.config_options,
            "commands": session.commands,
        },
        "plan": state.plan,
        "permissions": {
            id: {"fact": open.fact.to_data(), "since": iso_time(open.since)}
            for id, open in state.permissions.items()
        },
        "questions": {
            id: {"fact": open.fact.to_data(), "since": iso_time(open.since)}
            for id, open in state.questions.items()
        },
        "usage": {"used": usage.used, "size": usage.size, "cost": usage.cost, "turn": usage.turn},
    }


if __name__ == "__main__":  # review the differences before you commit them
    for path in paths():
        story = json.loads(path.read_text())
        text = json.dumps(story | expected_state(story), indent=2, ensure_ascii=False)
        path.write_text(f"{text}\n")
