"""terminal/*: commands an agent runs, as terminals of the session that everybody can watch.

A terminal is made in the very change that answers its request, and its id is that of the request's place in
the stream: read twice, it is made once.
"""

import os
import uuid
from typing import Any

from ..domain import commands
from ..domain.commands import AddWorker
from ..domain.conversation_state import PendingAgentRequest
from ..domain.errors import BullpenError, Conflict, Invalid, NotFound
from ..domain.events import Draft, WorkerCommand, WorkerTerminated
from ..domain.snapshot import Worker
from ..domain.states import WorkerState
from ..sandbox.root_rules import directory_below
from ..wire.acp import AgentTask
from ..wire.acp_calls import RESOURCE_NOT_FOUND, ErrorReply, OutgoingReply
from ..wire.jsonrpc import INVALID_PARAMS
from .children import ChildStart
from .conversation_change import ConversationChange, terminals_of
from .terminal import TerminalWorker
from .worker_services import WorkerServices, personal

WAIT = "terminal/wait_for_exit"
MOST_ALIVE = 64
MOST_OUTPUT = 1 << 20  # bytes, for who asks for more or says nothing
NAME_LENGTH = 40


class AgentTerminal(TerminalWorker):
    """A terminal that runs what an agent ordered, or what logs a person in, in place of a shell."""

    def _start(self) -> ChildStart:
        command = self.worker.command
        assert command is not None
        agents = self._workshop.agents
        lent = agents.environment(agents.get(command.like_agent)) if command.like_agent else {}
        base = {**personal(), **lent}
        environment = self._workshop.environment(self.worker, self._log.snapshot.repo_id, base, command.env)
        place = self._workshop.place(self.worker)
        return ChildStart(command.argv, environment, place, self.worker.cols, self.worker.rows)


def perform(exchange: ConversationChange, task: AgentTask, workshop: WorkerServices) -> None:
    """Does what the agent wants with a terminal, and answers; waiting for an end is answered at the end."""
    waits = task.id if task.method == WAIT else None
    try:
        result = _result(exchange, task, workshop)
    except BullpenError as error:
        code = RESOURCE_NOT_FOUND if isinstance(error, NotFound) else INVALID_PARAMS
        fault = ErrorReply(code, str(error))
        exchange.say(OutgoingReply(rpc_id=task.rpc_id, method=task.method, fault=fault, id=waits))
        return
    if result is not None:
        exchange.say(OutgoingReply(rpc_id=task.rpc_id, method=task.method, result=result, id=waits))


def has_ends(exchange: ConversationChange) -> bool:
    """Whether a terminal has ended that the agent waits for."""
    return bool(_awaited_ends(exchange))


def answer_ends(exchange: ConversationChange) -> None:
    """Tells the agent of every terminal it waits for that has ended."""
    for id, ask, terminal in _awaited_ends(exchange):
        result = _exit_status(terminal)
        exchange.say(OutgoingReply(rpc_id=ask.rpc_id, method=ask.method, result=result, id=id))


def _awaited_ends(exchange: ConversationChange) -> list[tuple[str, PendingAgentRequest, Worker]]:
    found = []
    for id, ask in exchange.conversation.traffic.asks.items():
        if ask.method == WAIT:
            terminal = exchange.snapshot.workers.get(str((ask.params or {}).get("terminalId")))
            if terminal is not None and not terminal.alive:
                found.append((id, ask, terminal))
    return found


def _result(exchange: ConversationChange, task: AgentTask, workshop: WorkerServices) -> dict[str, Any] | None:
    if task.method == "terminal/create":
        return {"terminalId": _create(exchange, task)}
    terminal = _terminal(exchange, task)
    match task.method:
        case "terminal/output":
            return _output(terminal, workshop)
        case "terminal/kill" if terminal.alive:
            _end(exchange, terminal, "killed by its agent")
        case "terminal/release" if terminal.state is not WorkerState.TERMINATED:
            _end(exchange, terminal, "released by its agent")
        case "terminal/wait_for_exit":
            return None if terminal.alive else _exit_status(terminal)
    return {}


def _create(exchange: ConversationChange, task: AgentTask) -> str:
    params, agent = task.params, exchange.worker
    command, arguments = params.get("command"), params.get("args") or []
    if not isinstance(command, str) or not command:
        raise Invalid("a terminal needs a command")
    if sum(terminal.alive for terminal in terminals_of(exchange.snapshot, agent.id)) >= MOST_ALIVE:
        raise Conflict(f"{MOST_ALIVE} of your terminals run already")
    argv = (command, *(each for each in arguments if isinstance(each, str)))
    if any("\0" in each for each in argv):
        raise Invalid("a command has no NUL in it")
    order = AddWorker(
        worker_id=str(uuid.uuid5(uuid.NAMESPACE_OID, task.id)),
        type="terminal",
        name=_name(argv),
        workspace=str(directory_below(agent.workspace, str(params.get("cwd") or agent.workspace))),
    )
    spawning = commands.add_worker(exchange.snapshot, order)
    limit = params.get("outputByteLimit")
    fact = WorkerCommand(
        argv=argv,
        env=_variables(params.get("env")),
        owner=agent.id,
        output_limit=limit if isinstance(limit, int) and limit > 0 else None,
    )
    exchange.tell_others([spawning, Draft(fact, spawning.worker_id, spawning.role)])
    return order.worker_id


def _terminal(exchange: ConversationChange, task: AgentTask) -> Worker:
    id = task.params.get("terminalId")
    for terminal in terminals_of(exchange.snapshot, exchange.worker.id):
        if terminal.id == id:
            return terminal
    raise NotFound(f"there is no terminal {id}")


def _end(exchange: ConversationChange, terminal: Worker, reason: str) -> None:
    exchange.tell_others([Draft(WorkerTerminated(reason=reason), terminal.id, terminal.role)])


def _output(terminal: Worker, workshop: WorkerServices) -> dict[str, Any]:
    assert terminal.command is not None
    most = min(terminal.command.output_limit or MOST_OUTPUT, MOST_OUTPUT)
    start, said = workshop.tail(terminal.id, terminal.run, most)
    text = said.decode("utf-8", "ignore" if start else "replace").replace("\r\n", "\n")
    result: dict[str, Any] = {"output": text, "truncated": start > 0}
    if terminal.state is WorkerState.FAILED:
        result["output"] += f"{terminal.error}\n"
    if not terminal.alive:
        result["exitStatus"] = _exit_status(terminal)
    return result


def _exit_status(terminal: Worker) -> dict[str, Any]:
    if terminal.state is WorkerState.FAILED:
        return {"exitCode": 127, "signal": None}
    if terminal.exit_code is None and terminal.signal is None:
        return {"exitCode": None, "signal": "SIGTERM"}  # it was ended; how is nobody's business any more
    return {"exitCode": terminal.exit_code, "signal": terminal.signal}


def _name(argv: tuple[str, ...]) -> str:
    """A short name a person can read; what is behind `sh -c` says more than the shell."""
    words = argv[2:] if len(argv) > 2 and argv[1] in ("-c", "-lc") else (os.path.basename(argv[0]), *argv[1:])
    text = "".join(letter if letter.isprintable() else " " for letter in " ".join(words))
    return " ".join(text.split())[:NAME_LENGTH].strip() or "Terminal"


def _variables(env: Any) -> dict[str, str]:
    found = {}
    for each in env if isinstance(env, list) else []:
        match each:
            case {"name": str(name), "value": str(value)} if name and not set(name) & {"=", "\0"}:
                found[name] = value.replace("\0", "")
    return found
