"""Orders, retries, lost connections and kills in any order: the server does what its model does."""

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
MIN_ACTIONS_BETWEEN = {"answer": 2, "link": 2, "server": 4, "agent": 5}  # by kind of loss

# Milliseconds from sending an order to the kill of the server; None, the most frequent value, is no kill.
KILL_DELAYS = st.sampled_from([None] * 20 + [0, 3, 10, 40])
CLIENTS = st.integers(0, 1)
KINDS = st.sampled_from(["ask", "wait", "say", "exit", "say", "ask", "wait"])  # an exit is less frequent


class ServerMachine(RuleBasedStateMachine):
    """One session at a time, two clients that connect and disconnect, and one agent that keeps a journal."""

    server: ClassVar[Server]
    loop: ClassVar[LoopThread]
    sessions: ClassVar[Iterator[int]]

    def __init__(self) -> None:
        super().__init__()
        self.valid = True  # no step failed
        self.answers: dict[NumberedPrompt, dict[str, Any]] = {}  # the answer to each acknowledged prompt
        self.number = 0
        self._open()

    # Orders of users

    @rule(kind=KINDS, client=CLIENTS, kill_delay=KILL_DELAYS)
    @precondition(lambda self: self.model.alive and len(self.model.queue) < MAX_QUEUED)
    def submit(self, kind: str, client: int, kill_delay: int | None) -> None:
        with self._step(settle=self.model.paused):
            prompt = self._next(kind)
            order = self.clients[client].prompt
            self.answers[prompt] = self._send(lambda: order(prompt.text, prompt.id), kill_delay)
            self.model.submit(prompt)

    @rule(kind=KINDS)
    @precondition(lambda self: not self.model.alive)
    def submit_to_an_ended_agent(self, kind: str) -> None:
        with self._step():
            prompt = self._next(kind)
            self._post("/prompt", 409, json={"text": prompt.text, "promptId": prompt.id})

    @rule(chooser=st.randoms(use_true_random=False), client=CLIENTS, kill_delay=KILL_DELAYS)
    @precondition(lambda self: self.answers and self._may_lose_again("answer"))
    def retry(self, chooser: Any, client: int, kill_delay: int | None) -> None:
        with self._step(lost="answer"):
            prompt = chooser.choice(list(self.answers))
            order = self.clients[client].prompt
            assert self._send(lambda: order(prompt.text, prompt.id), kill_delay) == self.answers[prompt]
            self._post("/prompt", 409, json={"text": "something else", "promptId": prompt.id})

    @rule(kill_delay=KILL_DELAYS)
    @precondition(lambda self: self.model.turn is not None and self.model.turn.kind == "ask")
    def approve(self, kill_delay: int | None) -> None:
        with self._step(settle=True):
            (permission,) = self._asked()
            status = self._send(lambda: self.witness.answer(permission, "yes"), kill_delay)
            # 409: the first attempt acted but got no answer
            assert status == 204 or kill_delay is not None
            assert self.loop.run(self.witness.answer(permission, "no")) == 409
            self.model.approve()

    @rule(kill_delay=KILL_DELAYS)
    @precondition(lambda self: self.model.turn is not None)
    def cancel(self, kill_delay: int | None) -> None:
        with self._step(settle=True):
            self._post("/cancel", 204, kill_delay=kill_delay)
            self.model.cancel()
            # a prompt sent before the end of the turn is queued and then paused with the others
            self._wait_until_as_modelled()

    @rule(kill_delay=KILL_DELAYS)
    @precondition(lambda self: self.model.paused)
    def resume_the_queue(self, kill_delay: int | None) -> None:
        with self._step(settle=True):
            self._post("/queue/resume", 200, kill_delay=kill_delay)
            self.model.resume()

    # Losses and restarts

    @rule(client=CLIENTS)
    @precondition(lambda self: self._may_lose_again("link"))
    def disconnect_or_reconnect(self, client: int) -> None:
        with self._step(lost="link"):
            if self.linked[client]:
                self._disconnect(client)
            else:
                self._connect(client)

    @rule()
    @precondition(lambda self: self._may_lose_again("server"))
    def crash_the_server(self) -> None:
        with self._step(lost="server"):
            self.loop.run(self.server.restart())

    @rule()
    @precondition(lambda self: self.model.alive and self._may_lose_again("agent"))
    def crash_the_agent(self) -> None:
        with self._step(settle=True, lost="agent"):
            os.kill(self._worker()["pid"], signal.SIGKILL)
            self.model.lose_agent()

    @rule(kill_delay=KILL_DELAYS)
    @precondition(lambda self: not self.model.alive)
    def restart_the_agent(self, kill_delay: int | None) -> None:
        with self._step(settle=True):
            self._post(f"/workers/{self.worker_id}/restart", 200, kill_delay=kill_delay)
            self.model.restart()
            self._wait_until_as_modelled()

    @rule()
    @precondition(lambda self: len(self.answers) > 5)
    def purge(self) -> None:
        with self._step(settle=True):
            self._check()
            self._close()
            self.loop.run(self.server.call("DELETE", f"{self.witness.path}?purge=true"))
            self.loop.run(self.server.call("GET", self.witness.path, 404))
            self._post("/prompt", 404, json={"text": "after the purge", "promptId": "too-late"})
            self._open()

    def teardown(self) -> None:
        try:
            if self.valid:
                self._wait_until_as_modelled()
                self._check()
        finally:
            self._close()
            gone = self.loop.run(self.server.http.delete(f"{self.witness.path}?purge=true"))
            assert gone.status_code in (200, 404), gone.text  # 404: the step that failed had purged it

    # Comparison with the model

    def _wait_until_as_modelled(self) -> None:
        """Wait until the server is in the state of the model."""
        try:
            self.loop.run(self._poll_until_as_modelled())
        except TimeoutError:
            raise AssertionError(f"{self._state(self.stored)} is not {self.model}") from None

    async def _poll_until_as_modelled(self) -> None:
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
                expected = (model.turns, model.alive, [prompt.id for prompt in model.queue], model.paused)
                if state == expected and self._turn_has_reached_its_wait():
                    return
                await asyncio.sleep(0.02)

    @staticmethod
    def _state(events: list[dict[str, Any]]) -> tuple[list[tuple[str, str]], bool]:
        """Return the turns that have ended, and whether the agent runs."""
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

    def _turn_has_reached_its_wait(self) -> bool:
        """Return whether the agent has done all that it does in its turn before it waits for a user."""
        turn = self.model.turn
        if turn is None or turn.kind == "ask":
            return len(self._asked()) == (turn is not None)
        text = "".join(each["data"]["text"] for each in self.stored if each["type"] == "agent_message")
        return f"begun-{turn.number}" in text

    def _check(self) -> None:
        """Check that every client has the log, every order acted once, and no prompt was sent twice."""
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
        received = [message_of(record) for record in read_journal(self.journal) if record["dir"] == "in"]
        assert (
            len([each for each in received if each.get("method") == "session/cancel"]) == self.model.cancels
        )
        outcomes = [(each.get("result") or {}).get("outcome") or {} for each in received]
        assert len([each for each in outcomes if each.get("optionId")]) == self.model.approvals

    # Helpers

    @contextmanager
    def _step(self, *, settle: bool = False, lost: str | None = None) -> Iterator[None]:
        """Run a step. If it fails, `valid` stays false, and the teardown checks nothing."""
        self.valid = False
        if lost is not None:
            self.lost[lost] = self._actions()
        if settle:
            self._wait_until_as_modelled()
        yield
        if not self.model.alive:
            self._wait_until_as_modelled()  # the next prompt must find the agent ended
        self.valid = True

    def _open(self) -> None:
        agent_id = f"agent-{next(self.sessions)}"
        self.journal = define_scripted(self.server.workspace, agent_id=agent_id)
        session = self.loop.run(self.server.new_session())
        self.clients = [RetryingClient(self.server, session["id"]) for _ in range(2)]
        self.witness = RetryingClient(self.server, session["id"])
        self.links = [ExitStack() for _ in self.clients]
        self.linked = [False for _ in self.clients]
        self.stored: list[dict[str, Any]] = []
        self.answers.clear()
        self.model = ConversationModel()
        self.lost = dict.fromkeys(MIN_ACTIONS_BETWEEN, 0)  # actions before the last loss of each
        self._post("/workers", 201, json={"type": "agent", "agentId": agent_id})
        self.worker_id = self._worker()["id"]
        self._wait_until_as_modelled()
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

    def _post(self, path: str, expect: int, kill_delay: int | None = None, **kwargs: Any) -> Any:
        """Send an order with a new idempotency key, and repeat it until a server has answered it."""
        key = {"Idempotency-Key": str(uuid.uuid4())}
        url = f"{self.witness.path}{path}"
        return self._send(lambda: self.server.call("POST", url, expect, headers=key, **kwargs), kill_delay)

    def _send(self, order: Callable[[], Awaitable[T]], kill_delay: int | None) -> T:
        return self.loop.run(self._insist(order, kill_delay))

    async def _insist(self, order: Callable[[], Awaitable[T]], kill_delay: int | None) -> T:
        async with asyncio.TaskGroup() as tasks:
            answer = tasks.create_task(retry_until_answered(order))
            if kill_delay is not None:
                await asyncio.sleep(kill_delay / 1000)
                await self.server.restart()
        return answer.result()

    def _may_lose_again(self, kind: str) -> bool:
        """Return whether a loss of this kind can find new errors: enough actions followed the last one."""
        return self._actions() >= self.lost[kind] + MIN_ACTIONS_BETWEEN[kind]

    def _actions(self) -> int:
        return len(self.answers) + self.model.approvals + self.model.cancels

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


def test_the_server_does_what_its_model_does_whichever_process_is_killed(tmp_path: Path) -> None:
    loop = LoopThread()
    with loop.enter(_running(tmp_path)) as server:
        ServerMachine.server, ServerMachine.loop, ServerMachine.sessions = (
            server,
            loop,
            iter(range(1_000_000)),
        )
        # Failures are not minimised: each attempt needs a real server, and the steps are printed anyway.
        wanted = settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=not FULL,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(ServerMachine, settings=wanted)
    loop.close()
