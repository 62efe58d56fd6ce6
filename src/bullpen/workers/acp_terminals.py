"""Perform an agent's ACP requests terminal/*: its commands run as terminals of the session.

A terminal is added in the same change that answers the request. Its id is derived from the position of the
request in the agent's output, so a request that is read twice adds one terminal.
"""

import uuid
from typing import Any

from msgspec.structs import replace

from ..domain import commands
from ..domain.commands import AddWorker
from ..domain.conversation_state import PendingAgentRequest
from ..domain.errors import BullpenError, Conflict, Invalid, NotFound
from ..domain.events import Draft, WorkerCommand, WorkerSpawning, WorkerTerminated
from ..domain.snapshot import Worker
from ..domain.states import WorkerState
from ..sandbox.root_rules import directory_below
from ..wire.acp import AgentTask
from ..wire.acp_calls import RESOURCE_NOT_FOUND, ErrorReply, OutgoingReply
from ..wire.jsonrpc import INVALID_PARAMS
from .conversation_change import ConversationChange, terminals_of
from .worker_services import WorkerServices

WAIT_METHOD = "terminal/wait_for_exit"
MAX_RUNNING = 64  # terminals of one agent
MAX_OUTPUT_BYTES = 1 << 20  # of one reply, whatever limit the agent sets


def perform(change: ConversationChange, task: AgentTask, services: WorkerServices) -> None:
    """Perform a terminal request and reply. A wait for an exit is answered when the terminal has ended."""
    waiting_id = task.id if task.method == WAIT_METHOD else None
    try:
        result = _result(change, task, services)
    except BullpenError as error:
        code = RESOURCE_NOT_FOUND if isinstance(error, NotFound) else INVALID_PARAMS
        fault = ErrorReply(code, str(error))
        change.send(OutgoingReply(rpc_id=task.rpc_id, method=task.method, fault=fault, id=waiting_id))
        return
    if result is not None:
        change.send(OutgoingReply(rpc_id=task.rpc_id, method=task.method, result=result, id=waiting_id))


def has_awaited_exits(change: ConversationChange) -> bool:
    """Return whether a terminal has ended for whose exit the agent waits."""
    return bool(_awaited_exits(change))


def answer_exits(change: ConversationChange) -> None:
    """Answer each wait of the agent for the exit of a terminal that has ended."""
    for id, request, terminal in _awaited_exits(change):
        result = _exit_status(terminal)
        change.send(OutgoingReply(rpc_id=request.rpc_id, method=request.method, result=result, id=id))


def _awaited_exits(change: ConversationChange) -> list[tuple[str, PendingAgentRequest, Worker]]:
    """Return id, request and terminal of each wait whose terminal has ended."""
    found = []
    for id, request in change.conversation.traffic.asks.items():
        if request.method == WAIT_METHOD:
            terminal = change.snapshot.workers.get(str((request.params or {}).get("terminalId")))
            if terminal is not None and not terminal.alive:
                found.append((id, request, terminal))
    return found


def _result(change: ConversationChange, task: AgentTask, services: WorkerServices) -> dict[str, Any] | None:
    """Perform a terminal request and return its result, or None if it is answered later."""
    if task.method == "terminal/create":
        return {"terminalId": _create(change, task)}
    terminal = _terminal(change, task)
    match task.method:
        case "terminal/output":
            return _output(terminal, services)
        case "terminal/kill" if terminal.alive:
            _end(change, terminal, "killed by its agent")
        case "terminal/release" if terminal.state is not WorkerState.TERMINATED:
            _end(change, terminal, "released by its agent")
        case "terminal/wait_for_exit":
            return None if terminal.alive else _exit_status(terminal)
    return {}


def _create(change: ConversationChange, task: AgentTask) -> str:
    """Add a terminal that runs the requested command, and return its id; raise Conflict if too many run."""
    params, agent = task.params, change.worker
    command, arguments = params.get("command"), params.get("args") or []
    if not isinstance(command, str) or not command:
        raise Invalid("a terminal needs a command")
    if sum(terminal.alive for terminal in terminals_of(change.snapshot, agent.id)) >= MAX_RUNNING:
        raise Conflict(f"{MAX_RUNNING} terminals of this agent run already")
    argv = (command, *(each for each in arguments if isinstance(each, str)))
    if any("\0" in each for each in argv):
        raise Invalid("a command must not contain NUL")
    order = AddWorker(
        worker_id=str(uuid.uuid5(uuid.NAMESPACE_OID, task.id)),
        type="terminal",
        name=commands.command_name(argv),
        workspace=str(directory_below(agent.workspace, str(params.get("cwd") or agent.workspace))),
    )
    spawning = _in_sandbox_of(agent, commands.add_worker(change.snapshot, order))
    limit = params.get("outputByteLimit")
    fact = WorkerCommand(
        argv=argv,
        env=_variables(params.get("env")),
        owner=agent.id,
        output_limit=limit if isinstance(limit, int) and limit > 0 else None,
    )
    change.record_drafts([spawning, Draft(fact, spawning.worker_id, spawning.role)])
    return order.worker_id


def _in_sandbox_of(agent: Worker, spawning: Draft) -> Draft:
    """Return the start of a terminal with the sandbox level of its agent."""
    assert isinstance(spawning.fact, WorkerSpawning)
    level = agent.sandbox or "open"  # the agent was started by a server without sandboxes
    return replace(spawning, fact=replace(spawning.fact, sandbox=level))


def _terminal(change: ConversationChange, task: AgentTask) -> Worker:
    """Return the terminal that a request names, or raise NotFound."""
    id = task.params.get("terminalId")
    for terminal in terminals_of(change.snapshot, change.worker.id):
        if terminal.id == id:
            return terminal
    raise NotFound(f"there is no terminal {id}")


def _end(change: ConversationChange, terminal: Worker, reason: str) -> None:
    """Record that a terminal is terminated."""
    change.record_drafts([Draft(WorkerTerminated(reason=reason), terminal.id, terminal.role)])


def _output(terminal: Worker, services: WorkerServices) -> dict[str, Any]:
    """Return the result of terminal/output."""
    assert terminal.command is not None
    limit = min(terminal.command.output_limit or MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES)
    start, output = services.read_tail(terminal.id, terminal.run, limit)
    text = output.decode("utf-8", "ignore" if start else "replace").replace("\r\n", "\n")
    result: dict[str, Any] = {"output": text, "truncated": start > 0}
    if terminal.state is WorkerState.FAILED:
        result["output"] += f"{terminal.error}\n"
    if not terminal.alive:
        result["exitStatus"] = _exit_status(terminal)
    return result


def _exit_status(terminal: Worker) -> dict[str, Any]:
    """Return the exit status of a terminal in the format of ACP."""
    if terminal.state is WorkerState.FAILED:
        return {"exitCode": 127, "signal": None}
    if terminal.exit_code is None and terminal.signal is None:
        return {"exitCode": None, "signal": "SIGTERM"}  # it was terminated; its exit status is not recorded
    return {"exitCode": terminal.exit_code, "signal": terminal.signal}


def _variables(env: Any) -> dict[str, str]:
    """Return the environment variables in a request by name; skip malformed ones."""
    found = {}
    for each in env if isinstance(env, list) else []:
        match each:
            case {"name": str(name), "value": str(value)} if name and not set(name) & {"=", "\0"}:
                found[name] = value.replace("\0", "")
    return found
