"""Orders, retries, cuts and deaths in any order: the house does what a model of it does (R-09)."""

import asyncio
import os
import signal
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from bullpen.client.loop_thread import LoopThread
from support.conversation_model import MAX_QUEUED, ConversationModel, NumberedPrompt
from support.retrying_client import RetryingClient, define_scripted, retry_until_answered
from support.scripted_agent.journal import message_of, prompts_in, read_journal
from support.server import Server

T = TypeVar("T")

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
EXAMPLES, STEPS = (500, 100) if FULL else (3, 30)
SECONDS = 60.0
PAUSES = {"answer": 2, "link": 2, "server": 4, "agent": 5}  # deeds between two losses of one thing

# Milliseconds from sending an order to the death of the server; mostly it lives.
DEATHS = st.sampled_from([None] * 20 + [0, 3, 10, 40])
CLIENTS = st.integers(0, 1)
KINDS = st.sampled_from(["ask", "wait", "say", "exit", "say", "ask", "wait"])  # an exit less often


class House(RuleBasedStateMachine):
    """One session at a time, two clients that come and go, one agent that keeps a journal."""

    server: ClassVar[Server]
    loop: ClassVar[LoopThread]
    sessions: ClassVar[Iterator[int]]

    def __init__(self) -> None:
        super().__init__()
        self.sound = True
        self.said: dict[NumberedPrompt, dict[str, Any]] = {}  # what was acknowledged, and how
        self.number = 0
        self._open()

    # What people do

    @rule(kind=KINDS, client=CLIENTS, death=DEATHS)
    @precondition(lambda self: self.model.alive and len(self.model.queue) < MAX_QUEUED)
    def submit(self, kind: str, client: int, death: int | None) -> None:
        with self._step(calm=self.model.paused):
            said = self._next(kind)
            order = self.clients[client].prompt
            self.said[said] = self._through(lambda: order(said.text, said.id), death)
            self.model.submit(said)

    @rule(kind=KINDS)
    @precondition(lambda self: not self.model.alive)
    def submit_to_nobody(self, kind: str) -> None:
        with self._step():
            said = self._next(kind)
            self._post("/prompt", 409, json={"text": said.text, "promptId": said.id})

    @rule(which=st.randoms(use_true_random=False), client=CLIENTS, death=DEATHS)
    @precondition(lambda self: self.said and self._has_news("answer"))
    def retry(self, which: Any, client: int, death: int | None) -> None:
        with self._step(lost="answer"):
            said = which.choice(list(self.said))
            order = self.clients[client].prompt
            assert self._through(lambda: order(said.text, said.id), death) == self.said[said]
            self._post("/prompt", 409, json={"text": "something else", "promptId": said.id})

    @rule(death=DEATHS)
    @precondition(lambda self: self.model.turn is not None and self.model.turn.kind == "ask")
    def approve(self, death: int | None) -> None:
        with self._step(calm=True):
            (permission,) = self._asked()
            status = self._through(lambda: self.witness.answer(permission, "yes"), death)
            assert status == 204 or death is not None  # a first try that got no answer may have come through
            assert self.loop.run(self.witness.answer(permission, "no")) == 409
            self.model.approve()

    @rule(death=DEATHS)
    @precondition(lambda self: self.model.turn is not None)
    def cancel(self, death: int | None) -> None:
        with self._step(calm=True):
            self._post("/cancel", 204, death=death)
            self.model.cancel()
            self._calm_down()  # what is said before the turn is over waits, and is held with the rest

    @rule(death=DEATHS)
    @precondition(lambda self: self.model.paused)
    def resume_the_queue(self, death: int | None) -> None:
        with self._step(calm=True):
            self._post("/queue/resume", 200, death=death)
            self.model.resume()

    # What comes and goes

    @rule(client=CLIENTS)
    @precondition(lambda self: self._has_news("link"))
    def disconnect_or_reconnect(self, client: int) -> None:
        with self._step(lost="link"):
            if self.linked[client]:
                self._disconnect(client)
            else:
                self._connect(client)

    @rule()
    @precondition(lambda self: self._has_news("server"))
    def crash_the_server(self) -> None:
        with self._step(lost="server"):
            self.loop.run(self.server.restart())

    @rule()
    @precondition(lambda self: self.model.alive and self._has_news("agent"))
    def crash_the_agent(self) -> None:
        with self._step(calm=True, lost="agent"):
            os.kill(self._worker()["pid"], signal.SIGKILL)
            self.model.lose_agent()

    @rule(death=DEATHS)
    @precondition(lambda self: not self.model.alive)
    def restart_the_agent(self, death: int | None) -> None:
        with self._step(calm=True):
            self._post(f"/workers/{self.worker_id}/restart", 200, death=death)
            self.model.restart()
            self._calm_down()

    @rule()
    @precondition(lambda self: len(self.said) > 5)
    def purge(self) -> None:
        with self._step(calm=True):
            self._check()
            self._close()
            self.loop.run(self.server.call("DELETE", f"{self.witness.path}?purge=true"))
            self.loop.run(self.server.call("GET", self.witness.path, 404))
            self._post("/prompt", 404, json={"text": "anybody?", "promptId": "too-late"})
            self._open()

    def teardown(self) -> None:
        try:
            if self.sound:
                self._calm_down()
                self._check()
        finally:
            self._close()
            gone = self.loop.run(self.server.http.delete(f"{self.witness.path}?purge=true"))
            assert gone.status_code in (200, 404), gone.text  # 404: the step that failed had purged it

    # The oracle

    def _calm_down(self) -> None:
        """Waits until the house has done all that the model says it will do by itself."""
        try:
            self.loop.run(self._until_calm())
        except TimeoutError:
            raise AssertionError(f"{self._state(self.stored)} is not {self.model}") from None

    async def _until_calm(self) -> None:
        async with asyncio.timeout(SECONDS):
            while True:
                after = len(self.stored)
                self.stored += (await self.witness.get(f"/events?after={after}&limit=10000"))["events"]
                queue = await self.witness.get("/queue")
                state = (
                    *self._state(self.stored),
                    [item["id"] for item in queue["messages"]],
                    queue["paused"],
                )
                model = self.model
                expected = (model.turns, model.alive, [said.id for said in model.queue], model.paused)
                if state == expected and self._has_begun():
                    return
                await asyncio.sleep(0.02)

    @staticmethod
    def _state(events: list[dict[str, Any]]) -> tuple[list[tuple[str, str]], bool]:
        """The turns that are over, and whether the agent lives."""
        started, turns, alive = "", [], False
        for event in events:
            match event["type"]:
                case "turn_start":
                    started = event["data"]["promptId"]
                case "turn_end":
                    turns.append((started, event["data"]["stopReason"]))
                case "worker_ready":
                    alive = True
                case "worker_failed" | "worker_exited":
                    alive = False
        return turns, alive

    def _has_begun(self) -> bool:
        """Whether the agent has come as far as it can in the turn that waits for a person."""
        turn = self.model.turn
        if turn is None or turn.kind == "ask":
            return len(self._asked()) == (turn is not None)
        said = "".join(each["data"]["text"] for each in self.stored if each["type"] == "agent_message")
        return f"begun-{turn.number}" in said

    def _check(self) -> None:
        """Every client has the log, every order had its one effect, the agent heard nothing twice."""
        log = self.loop.run(self.witness.stored_events())
        assert log == self.stored
        assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
        for number, client in enumerate(self.clients):
            self._connect(number)
            self.loop.run(client.until_length(len(log)))
            assert client.events == log
        prompted = [each["data"]["text"] for each in log if each["type"] == "user_prompt"]
        assert prompts_in(self.journal) == prompted
        assert len(set(prompted)) == len(prompted)
        assert len([each for each in log if each["type"] == "worker_spawning"]) == self.model.runs
        selected = [each for each in log if each["data"].get("status") == "selected"]
        assert len(selected) == self.model.approvals
        heard = [message_of(record) for record in read_journal(self.journal) if record["dir"] == "in"]
        assert len([each for each in heard if each.get("method") == "session/cancel"]) == self.model.cancels
        outcomes = [(each.get("result") or {}).get("outcome") or {} for each in heard]
        assert len([each for each in outcomes if each.get("optionId")]) == self.model.approvals

    # The machinery

    @contextmanager
    def _step(self, *, calm: bool = False, lost: str | None = None) -> Iterator[None]:
        """A step that fails is the end: what is left is not looked at any more."""
        self.sound = False
        if lost is not None:
            self.lost[lost] = self._deeds()
        if calm:
            self._calm_down()
        yield
        if not self.model.alive:
            self._calm_down()  # who speaks next is to find it dead, whatever step led to that
        self.sound = True

    def _open(self) -> None:
        agent_id = f"agent-{next(self.sessions)}"
        self.journal = define_scripted(self.server.workspace, agent_id=agent_id)
        session = self.loop.run(self.server.new_session())
        self.clients = [RetryingClient(self.server, session["id"]) for _ in range(2)]
        self.witness = RetryingClient(self.server, session["id"])
        self.links = [ExitStack() for _ in self.clients]
        self.linked = [False for _ in self.clients]
        self.stored: list[dict[str, Any]] = []
        self.said.clear()
        self.model = ConversationModel()
        self.lost = dict.fromkeys(PAUSES, 0)  # deeds before the last loss of each
        self._post("/workers", 201, json={"type": "agent", "agentId": agent_id})
        self.worker_id = self._worker()["id"]
        self._calm_down()
        for client in range(len(self.clients)):
            self._connect(client)

    def _close(self) -> None:
        for client in range(len(self.clients)):
            self._disconnect(client)

    def _disconnect(self, client: int) -> None:
        self.linked[client] = False
        self.links[client].close()

    def _connect(self, client: int) -> None:
        self._disconnect(client)
        self.linked[client] = True
        self.links[client].enter_context(self.loop.enter(self.clients[client].following()))

    def _next(self, kind: str) -> NumberedPrompt:
        self.number += 1
        return NumberedPrompt(self.number, kind)

    def _post(self, path: str, expect: int, death: int | None = None, **kwargs: Any) -> Any:
        """An order with a key of its own, repeated until a living server has answered it."""
        key = {"Idempotency-Key": str(uuid.uuid4())}
        url = f"{self.witness.path}{path}"
        return self._through(lambda: self.server.call("POST", url, expect, headers=key, **kwargs), death)

    def _through(self, order: Callable[[], Awaitable[T]], death: int | None) -> T:
        return self.loop.run(self._insist(order, death))

    async def _insist(self, order: Callable[[], Awaitable[T]], death: int | None) -> T:
        async with asyncio.TaskGroup() as tasks:
            answer = tasks.create_task(retry_until_answered(order))
            if death is not None:
                await asyncio.sleep(death / 1000)
                await self.server.restart()
        return answer.result()

    def _has_news(self, what: str) -> bool:
        """Whether enough was done since its last loss that another could show something new."""
        return self._deeds() >= self.lost[what] + PAUSES[what]

    def _deeds(self) -> int:
        return len(self.said) + self.model.approvals + self.model.cancels

    def _asked(self) -> set[str]:
        self.witness.events = self.stored
        return self.witness.open_permissions()

    def _worker(self) -> dict[str, Any]:
        (worker,) = self.loop.run(self.witness.get("/workers"))["workers"]
        assert isinstance(worker, dict)
        return worker


@asynccontextmanager
async def _running(directory: Path) -> AsyncIterator[Server]:
    server = Server(directory / "home", directory / "workspace")
    server.workspace.mkdir()
    await server.start()
    try:
        yield server
    finally:
        await server.close()


def test_the_house_does_what_its_model_does_whatever_dies(tmp_path: Path) -> None:
    loop = LoopThread()
    with loop.enter(_running(tmp_path)) as server:
        House.server, House.loop, House.sessions = server, loop, iter(range(1_000_000))
        # Nothing is made smaller after a failure: each try is a real house, and the steps are printed anyway.
        wanted = settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=not FULL,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(House, settings=wanted)
    loop.close()
