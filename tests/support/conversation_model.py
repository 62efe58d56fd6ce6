"""What must become of a conversation, whatever dies meanwhile: a model of prompts, turns and the queue."""

from dataclasses import dataclass, field

SCRIPTS = {
    "say": "{n} [[stream n=3]]",
    "ask": "{n} [[permission title=t{n}]] [[chunk answered-{n}]]",
    "wait": "{n} [[chunk begun-{n}]] [[wait_cancel]]",
    "exit": "{n} [[chunk leaving-{n}]] [[exit code=3]]",
}
MOST_QUEUED = 10


@dataclass(frozen=True)
class Said:
    """A prompt; its number makes its text one of its kind."""

    number: int
    kind: str

    @property
    def id(self) -> str:
        return f"prompt-{self.number}"

    @property
    def text(self) -> str:
        return SCRIPTS[self.kind].format(n=self.number)


@dataclass
class Conversation:
    """One session with one agent, as far as the orders that were acknowledged determine it."""

    alive: bool = True
    paused: bool = False
    turn: Said | None = None  # one that goes on until a person does something
    queue: list[Said] = field(default_factory=list)
    turns: list[tuple[str, str]] = field(default_factory=list)  # those that are over: prompt and stop reason
    approvals: int = 0
    cancels: int = 0
    runs: int = 1

    def submit(self, said: Said) -> None:
        if self.turn is None and (self.paused or not self.queue):  # what is held lets others pass
            self._begin(said)
        else:
            self.queue.append(said)

    def approve(self) -> None:
        self.approvals += 1
        self._end_turn("end_turn")

    def cancel(self) -> None:
        if self.turn is not None:
            self.cancels += 1
            self._end_turn("cancelled")

    def lose_agent(self) -> None:
        self.alive = False
        if self.turn is not None:
            self._end_turn("error")

    def restart(self) -> None:
        self.alive = True
        self.runs += 1
        self._go_on()

    def resume(self) -> None:
        self.paused = False
        self._go_on()

    def _begin(self, said: Said) -> None:
        self.turn = said
        if said.kind == "say":
            self._end_turn("end_turn")
        elif said.kind == "exit":
            self.lose_agent()

    def _end_turn(self, reason: str) -> None:
        assert self.turn is not None
        self.turns.append((self.turn.id, reason))
        self.turn = None
        self.paused = self.paused or (reason != "end_turn" and bool(self.queue))
        self._go_on()

    def _go_on(self) -> None:
        while self.queue and self.alive and not self.paused and self.turn is None:
            self._begin(self.queue.pop(0))
