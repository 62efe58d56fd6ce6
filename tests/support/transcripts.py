"""Recorded traffic of real agents, replayed through `wire/` as a worker would read it."""

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
KEPT = ("sessionId", "modeId", "modelId", "configId", "value")


def transcripts() -> list[str]:
    return sorted(path.stem for path in TRANSCRIPTS.glob("*.jsonl"))


def entries(name: str) -> Iterator[dict[str, Any]]:
    """`{t, dir, msg}`: `run` is the start of a process, `c2a` is to the agent, `a2c` from it."""
    for line in (TRANSCRIPTS / f"{name}.jsonl").read_text().splitlines():
        yield json.loads(line)


def agent_of(name: str) -> AgentDefinition:
    """The definition of the agent a transcript is of."""
    return builtin()[name.partition(".")[0].removesuffix("-acp")]


class Replay:
    """A conversation read again: `said` are the facts that came of the agent's own messages."""

    def __init__(self, definition: AgentDefinition) -> None:
        self.state = Conversation()
        self.said: list[Fact] = []
        self.readings: list[ParsedMessage] = []
        self.consumed = 0
        self._definition = definition
        self._seq = 0
        self._start_run(1)

    def play(self, name: str) -> None:
        runs = 0
        for entry in entries(name):
            self._tell(self._joiner.take_due(entry["t"]))
            match entry["dir"]:
                case "run":
                    runs += 1
                    self._start_run(runs)
                case "c2a":
                    self._send(entry["msg"])
                case "a2c":
                    self.feed(json.dumps(entry["msg"]).encode() + b"\n", entry["t"])
        self._tell(self._joiner.flush(closes=True))

    def feed(self, data: bytes, now: float) -> None:
        for line in self._peer.feed(data):
            reading = self._reader.read(line, self.state)
            self.readings.append(reading)
            if reading.chunk:
                self._tell(self._joiner.add(reading.chunk, line, now))
            elif not reading.ignored:
                self._tell(self._joiner.flush(reading.closes_text))
            self._tell(reading.facts)
            for reply in reading.replies:
                self.fold(reply.fact(self.state.traffic.next_n))
            self.consumed = self._joiner.consumed_offset(line.end)

    def outcomes(self) -> Counter[str]:
        """How many messages came to what; each counts once."""
        return Counter(_outcome(reading) for reading in self.readings)

    def _start_run(self, run: int) -> None:
        self._peer = JsonRpcPeer()
        self._joiner = ChunkJoiner()
        self._reader = AcpReader("w", run, self._definition)
        self.fold(WorkerSpawning(worker_type="agent", name="w", run=run, workspace="/project"))

    def _send(self, message: dict[str, Any]) -> None:
        match message:
            case {"method": str(method), "id": int(n), "params": params}:
                kept = {key: params[key] for key in KEPT if key in params}
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

    def _tell(self, facts: list[Any]) -> None:
        for fact in facts:
            self.said.append(fact)
            self.fold(fact)

    def fold(self, fact: Fact) -> None:
        self._seq += 1
        self.state = fold_conversation(self.state, Event(self._seq, self._seq, fact, "w", "w"))


def golden(facts: list[Fact]) -> str:
    lines = [json.dumps({"type": fact.type, "data": fact.to_data()}, ensure_ascii=False) for fact in facts]
    return "\n".join(lines) + "\n"


def _outcome(reading: ParsedMessage) -> str:
    if reading.ignored:
        return f"ignored: {reading.ignored}"
    if reading.chunk:
        return "text"
    if reading.task:
        return f"task: {reading.task.method}"
    return reading.facts[-1].type if reading.facts else "reply"


if __name__ == "__main__":  # writes the golden files anew; read what changed before you commit it
    for name in transcripts():
        replay = Replay(agent_of(name))
        replay.play(name)
        (TRANSCRIPTS / f"{name}.facts").write_text(golden(replay.said))
