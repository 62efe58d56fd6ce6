"""A model of prompts, turns and the queue: the expected state, whichever process is killed."""

from dataclasses import dataclass, field

SCRIPTS = {
    "say": "{n} [[stream n=3]]",
    "ask": "{n} [[permission title=t{n}]] [[chunk answered-{n}]]",
    "wait": "{n} [[chunk begun-{n}]] [[wait_cancel]]",
    "exit": "{n} [[chunk leaving-{n}]] [[exit code=3]]",
}
MAX_QUEUED = 10


@dataclass(frozen=True)
class NumberedPrompt:
    """A prompt of a kind in SCRIPTS. Its number makes its id and text unique."""

    number: int
    kind: str

    @property
    def id(self) -> str:
        return f"prompt-{self.number}"

    @property
    def text(self) -> str:
        return SCRIPTS[self.kind].format(n=self.number)


@dataclass
class ConversationModel:
    """The state of a session with one agent that follows from the acknowledged requests."""

    alive: bool = True
    paused: bool = False
    turn: NumberedPrompt | None = None  # the turn that runs until the user answers or cancels
    queue: list[NumberedPrompt] = field(default_factory=list)
    turns: list[tuple[str, str]] = field(default_factory=list)  # the ended turns: prompt id and stop reason
    approvals: int = 0
    cancels: int = 0
    runs: int = 1

    def submit(self, prompt: NumberedPrompt) -> None:
        if self.turn is None and (self.paused or not self.queue):  # a paused queue does not delay new prompts
            self._begin(prompt)
        else:
            self.queue.append(prompt)

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
        self._begin_queued()

    def resume(self) -> None:
        self.paused = False
        self._begin_queued()

    def _begin(self, prompt: NumberedPrompt) -> None:
        self.turn = prompt
        if prompt.kind == "say":
            self._end_turn("end_turn")
        elif prompt.kind == "exit":
            self.lose_agent()

    def _end_turn(self, reason: str) -> None:
        assert self.turn is not None
        self.turns.append((self.turn.id, reason))
        self.turn = None
        self.paused = self.paused or (reason != "end_turn" and bool(self.queue))
        self._begin_queued()

    def _begin_queued(self) -> None:
        while self.queue and self.alive and not self.paused and self.turn is None:
            self._begin(self.queue.pop(0))
