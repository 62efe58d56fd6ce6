"""The stories that the fold and its twin in the page both pass; run by its path, it writes their sums."""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # it is run by its path

from bullpen.domain.conversation_state import Conversation
from bullpen.domain.queue import QueueItem
from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.wire.browser import iso_time, read_event, session_json

GOLDEN = Path(__file__).parents[1] / "golden"


def paths() -> list[Path]:
    return sorted(GOLDEN.glob("*.json"))


def snapshot_of(story: dict[str, Any]) -> Snapshot:
    return fold_all(Snapshot(id=story["id"]), map(read_event, story["events"]))


def adds_up(story: dict[str, Any]) -> dict[str, Any]:
    """The session as clients are told of it, and what the page makes of its queue and conversations."""
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


if __name__ == "__main__":  # read what changed before you commit it
    for path in paths():
        story = json.loads(path.read_text())
        text = json.dumps(story | adds_up(story), indent=2, ensure_ascii=False)
        path.write_text(f"{text}\n")
