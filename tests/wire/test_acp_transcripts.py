"""Recorded traffic of gemini, opencode and codex gives the expected facts, and no message is lost."""

import json
from collections import Counter
from typing import Any

import pytest

from bullpen.domain.conversation import AgentMessage, AgentThought
from bullpen.domain.events import FACTS
from support.transcripts import (
    TRANSCRIPTS,
    TranscriptReplay,
    agent_definition_of,
    golden_text,
    read_entries,
    transcript_names,
)

NAMES = transcript_names()


def replayed(name: str) -> TranscriptReplay:
    replay = TranscriptReplay(agent_definition_of(name))
    replay.play(name)
    return replay


def messages(name: str) -> list[dict[str, Any]]:
    return [entry["msg"] for entry in read_entries(name) if entry["dir"] == "a2c"]


def updates(name: str, kind: str) -> list[dict[str, Any]]:
    sent = [message["params"] for message in messages(name) if "update" in message.get("params", {})]
    return [params["update"] for params in sent if params["update"]["sessionUpdate"] == kind]


def test_there_are_transcripts_of_three_agents() -> None:
    assert Counter(name.partition(".")[0] for name in NAMES) == {"codex-acp": 7, "gemini": 7, "opencode": 7}


@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_gives_the_facts_that_were_reviewed(name: str) -> None:
    assert golden_text(replayed(name).facts) == (TRANSCRIPTS / f"{name}.facts").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_every_message_of_a_transcript_has_a_known_outcome(name: str) -> None:
    replay = replayed(name)
    outcomes = replay.outcomes()
    assert outcomes.total() == len(messages(name))
    ignored = {reason for reason in outcomes if reason.startswith("ignored")}
    assert ignored <= {"ignored: history that is known already"}
    assert bool(ignored) == (name in ("codex-acp.load", "opencode.load"))  # gemini's session was gone
    assert not {"unknown_update", "diagnostic"} & set(outcomes)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith(".load")])
@pytest.mark.parametrize(
    ("kind", "fact"), [("agent_message_chunk", AgentMessage), ("agent_thought_chunk", AgentThought)]
)
def test_text_is_joined_without_losing_a_character(
    name: str, kind: str, fact: type[AgentMessage] | type[AgentThought]
) -> None:
    expected = "".join(update["content"]["text"] for update in updates(name, kind))
    pieces = [each for each in replayed(name).facts if isinstance(each, fact)]
    assert "".join(piece.text for piece in pieces) == expected
    assert not pieces or not pieces[-1].partial


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith(".load")])
def test_tool_calls_are_kept_in_the_agents_own_words(name: str) -> None:
    for kind in ("tool_call", "tool_call_update"):
        kept = [fact.to_data() for fact in replayed(name).facts if fact.type == kind]
        assert [call for call in kept if "sessionUpdate" in call] == updates(name, kind)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_open_at_the_end(name: str) -> None:
    state = replayed(name).state
    assert state.turn is None
    assert state.block is None
    assert (state.tools, state.permissions, state.questions) == ({}, {}, {})
    assert (state.traffic.calls, state.traffic.asks) == ({}, {})
    assert state.acp_session_id


@pytest.mark.parametrize("name", NAMES)
def test_facts_are_read_back_from_their_stored_form(name: str) -> None:
    for fact in replayed(name).facts:
        stored = json.loads(json.dumps(fact.to_data()))
        assert FACTS[fact.type].from_data(stored) == fact


def test_loaded_history_is_ignored() -> None:
    outcomes = replayed("codex-acp.load").outcomes()
    assert outcomes["ignored: history that is known already"] == 5  # a prompt, two texts, a call and its end


def test_a_session_that_could_not_be_loaded_has_the_error_of_the_agent() -> None:
    refused = [fact.to_data() for fact in replayed("gemini.load").facts if "error" in fact.to_data()]
    assert refused[0]["method"] == "session/load"
    assert refused[0]["error"]["data"] == {"details": "No previous sessions found for this project."}
    assert refused[-1]["stopReason"] == "error"


def test_requests_for_files_are_tasks() -> None:
    assert replayed("gemini.write").outcomes()["task: fs/read_text_file"] == 2
    assert replayed("opencode.write").outcomes()["task: fs/write_text_file"] == 1
