"""Entries of `sessions.json`, in the old and the new format."""

from typing import Any

import pytest

from bullpen.domain.errors import Invalid
from bullpen.wire.sessions_json import SavedSession, SavedWorker, is_old, is_uuid, read_saved, read_time

NEW = {
    "id": "s",
    "type": "worktree",
    "locationPath": "/srv",
    "createdAt": "2025",
    "repositoryId": "r",
    "worktreeId": "t",
    "workers": [{"id": "w", "type": "agent", "name": "Helper", "agentId": "scripted", "pid": 1}],
    "pid": 7,
}
OLD = {"id": "s", "worktreePath": "/srv", "createdAt": "2025", "pid": 7}


def test_the_new_format_is_read_as_it_was_saved() -> None:
    assert read_saved(NEW) == SavedSession(
        id="s",
        type="worktree",
        location_path="/srv",
        created_at="2025",
        workers=[SavedWorker(id="w", type="agent", name="Helper", agent_id="scripted")],
        repository_id="r",
        worktree_id="t",
    )
    bare = read_saved(
        {name: NEW[name] for name in ("id", "type", "locationPath", "createdAt")} | {"workers": []}
    )
    assert (bare.workers, bare.repository_id, bare.worktree_id) == ([], None, None)


def test_an_entry_of_the_old_format_is_a_session_with_one_agent() -> None:
    agent = SavedWorker(
        id="s-agent", type="agent", name="Claude", agent_id="claude-code-builtin", created_at="2025"
    )
    fields: dict[str, Any] = {"id": "s", "location_path": "/srv", "created_at": "2025", "workers": [agent]}
    quick = SavedSession(type="quick", **fields)
    assert read_saved(OLD) == read_saved(OLD | {"repositoryId": "default"}) == quick
    assert read_saved(OLD | {"repositoryId": "r"}) == SavedSession(
        type="worktree", repository_id="r", worktree_id="/srv", **fields
    )


def test_an_agent_has_ids_in_bullpen_that_prefer_the_agent_in_a_terminal() -> None:
    expected: dict[str | None, tuple[str, ...]] = {
        "claude-code-builtin": ("claude-tui", "claude"),
        "scripted": ("scripted-tui", "scripted"),
        None: (),
    }
    for saved, agents in expected.items():
        assert SavedWorker(id="w", type="agent", agent_id=saved).agents == agents


def test_a_saved_time_is_read_unless_it_is_unreadable_or_later_than_now() -> None:
    now = 1_800_000_000_000
    assert read_time("2025-01-01T00:00:00.123Z", now) == 1_735_689_600_123
    assert read_time("2025-01-01T00:00:00.123", now) == 1_735_689_600_123
    assert read_time("1960-01-01T00:00:00Z", now) == 0
    for text in ("", "yesterday", "2999-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59"):
        assert read_time(text, now) in (0, now)


def test_a_session_is_old_unless_it_has_a_type_and_workers() -> None:
    assert not is_old({"type": 1, "workers": 1})
    for missing in ({"type": 1}, {"workers": 1}, {}):
        assert is_old(missing)
    for entry in (None, [], "type workers", ["type", "workers"]):
        assert not is_old(entry)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (7, "Expected `object`, got `int`"),
        ({}, "Object missing required field `id`"),
        (OLD | {"createdAt": 5}, "Expected `str`, got `int` - at `$.createdAt`"),
        (NEW | {"workers": 3}, "Expected `array`, got `int` - at `$.workers`"),
    ],
)
def test_an_entry_of_neither_format_is_refused_with_the_reason(entry: Any, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_saved(entry)
    assert str(refused.value) == sentence


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert read_saved(OLD | {"id": "a\ud800"}).id == "a\ufffd"


def test_only_an_id_in_the_usual_form_is_kept() -> None:
    assert is_uuid("0123abcd-0123-4567-89ab-0123456789ab")
    for text in ("", "0123ABCD-0123-4567-89AB-0123456789AB", "0123abcd-0123-4567-89ab-0123456789ab-"):
        assert not is_uuid(text)
