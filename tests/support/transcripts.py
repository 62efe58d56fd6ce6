"""Replay recorded traffic of real agents through `wire/`, as a worker reads it."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bullpen.agents.definitions import builtin
from bullpen.domain.agents import AgentDefinition
from bullpen.domain.conversation import (
    NoticeSent,
    Permission,
    ReplySent,
    RequestSent,
    TurnStart,
)
from bullpen.domain.conversation_state import Conversation, fold_conversation
from bullpen.domain.events import Event, Fact, WorkerSpawning
from bullpen.wire.acp import AcpReader, ParsedMessage
from bullpen.wire.acp_joiner import ChunkJoiner
from bullpen.wire.jsonrpc import JsonRpcPeer

TRANSCRIPTS = Path(__file__).parents[1] / "wire" / "transcripts"
KEPT_PARAMS = ("sessionId", "modeId", "modelId", "configId", "value")


def transcript_names() -> list[str]:
    return sorted(path.stem for path in TRANSCRIPTS.glob("*.jsonl"))


def read_entries(name: str) -> Iterator[dict[str, Any]]:
    """Yield `{t, dir, msg}`; `dir` is `run` (a process starts), `c2a` (to the agent) or `a2c` (from it)."""
    for line in (TRANSCRIPTS / f"{name}.jsonl").read_text().splitlines():
        yield json.loads(line)


def agent_definition_of(name: str) -> AgentDefinition:
    """Return the definition of the agent in a transcript."""
    return builtin()[name.partition(".")[0].removesuffix("-acp")]


class TranscriptReplay:
    """Reads a transcript again. `facts` are the facts made from the agent's messages."""

    def __init__(self, definition: AgentDefinition) -> None:
        self.state = Conversation()
        self.facts: list[Fact] = []
        self.parsed_messages: list[ParsedMessage] = []
        self.consumed = 0
        self._definition = definition
        self._seq = 0
        self._start_run(1)

    def play(self, name: str) -> None:
        runs = 0
        for entry in read_entries(name):
            self._add(self._joiner.take_due(entry["t"]))
            match entry["dir"]:
                case "run":
                    runs += 1
                    self._start_run(runs)
                case "c2a":
                    self._send(entry["msg"])
                case "a2c":
                    self.feed(json.dumps(entry["msg"]).encode() + b"\n", entry["t"])
        self._add(self._joiner.flush(closes=True))

    def feed(self, data: bytes, now: float) -> None:
        for line in self._peer.feed(data):
            parsed = self._reader.read(line, self.state)
            self.parsed_messages.append(parsed)
            if parsed.chunk:
                self._add(self._joiner.add(parsed.chunk, line, now))
            elif not parsed.ignored:
                self._add(self._joiner.flush(parsed.closes_text))
            self._add(parsed.facts)
            for reply in parsed.replies:
                self.fold(reply.fact(self.state.traffic.next_n))
            self.consumed = self._joiner.consumed_offset(line.end)

    def outcomes(self) -> Counter[str]:
        """Return the number of messages with each outcome. Each message has one outcome."""
        return Counter(_outcome(parsed) for parsed in self.parsed_messages)

    def _start_run(self, run: int) -> None:
        self._peer = JsonRpcPeer()
        self._joiner = ChunkJoiner()
        self._reader = AcpReader("w", run, self._definition)
        self.fold(WorkerSpawning(worker_type="agent", name="w", run=run, workspace="/project"))

    def _send(self, message: dict[str, Any]) -> None:
        match message:
            case {"method": str(method), "id": int(n), "params": params}:
                kept = {key: params[key] for key in KEPT_PARAMS if key in params}
                if method == "session/prompt":
                    self.fold(TurnStart(prompt_id=f"prompt-{n}"))
                self.fold(RequestSent(n=n, method=method, params=kept or None))
            case {"method": str(method)}:
                self.fold(NoticeSent(n=self.state.traffic.next_n, method=method))
            case {"id": rpc_id}:
                self._reply(rpc_id, message)

    def _reply(self, rpc_id: Any, message: dict[str, Any]) -> None:
        id = next((id for id, ask in self.state.traffic.asks.items() if ask.rpc_id == rpc_id), None)
        if id in self.state.permissions:
            outcome = message["result"]["outcome"]
            fact = self.state.permissions[id].fact
            self.fold(replace(fact, status=outcome["outcome"], option_id=outcome.get("optionId")))
        n = self.state.traffic.next_n
        self.fold(ReplySent(n=n, method=Permission.type, id=id))

    def _add(self, facts: list[Any]) -> None:
        for fact in facts:
            self.facts.append(fact)
            self.fold(fact)

    def fold(self, fact: Fact) -> None:
        self._seq += 1
        self.state = fold_conversation(self.state, Event(self._seq, self._seq, fact, "w", "w"))


def golden_text(facts: list[Fact]) -> str:
    lines = [json.dumps({"type": fact.type, "data": fact.to_data()}, ensure_ascii=False) for fact in facts]
    return "\n".join(lines) + "\n"


def _outcome(parsed: ParsedMessage) -> str:
    if parsed.ignored:
        return f"ignored: {parsed.ignored}"
    if parsed.chunk:
        return "text"
    if parsed.task:
        return f"task: {parsed.task.method}"
    return parsed.facts[-1].type if parsed.facts else "reply"


if __name__ == "__main__":  # writes the golden files again; review the differences before you commit them
    for name in transcript_names():
        replay = TranscriptReplay(agent_definition_of(name))
        replay.play(name)
        (TRANSCRIPTS / f"{name}.facts").write_text(golden_text(replay.facts))
