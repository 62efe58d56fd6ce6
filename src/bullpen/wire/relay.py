"""The messages of the relay socket: the requests of a client, and the notices about its agents."""

from typing import Any

import msgspec
from msgspec import Struct

from ..domain.commands import REPLACED
from ..domain.conversation import AgentMessage
from ..domain.errors import BullpenError, Invalid
from ..domain.events import (
    Event,
    SessionEnd,
    SessionStart,
    WorkerExited,
    WorkerFailed,
    WorkerReady,
    WorkerTerminated,
)
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import WorkerState, relay_agent_state
from .browser import iso_time

Notice = dict[str, Any]

# The reasons of Bullpen that have another name in the relay.
REASONS = {"user_request": "user requested"}


class CreateSession(Struct, frozen=True, tag_field="type", tag="session:create"):
    """Relay request: create a session."""


class InSession(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel"):
    """Base class of relay requests about one session."""

    session_id: str


class SpawnAgent(InSession, frozen=True, kw_only=True, tag="agent:spawn"):
    """Relay request: start an agent in a role."""

    role: str
    workspace: str
    agent_id: str | None = None


class MessageAgent(InSession, frozen=True, kw_only=True, tag="agent:message"):
    """Relay request: send a prompt to the agent in a role."""

    role: str
    content: str


class TerminateAgent(InSession, frozen=True, kw_only=True, tag="agent:terminate"):
    """Relay request: end the agent in a role."""

    role: str


class ListAgents(InSession, frozen=True, kw_only=True, tag="agent:list"):
    """Relay request: list the agents of a session."""


class GetAgent(InSession, frozen=True, kw_only=True, tag="agent:get"):
    """Relay request: describe the agent in a role."""

    role: str


class TerminateSession(InSession, frozen=True, kw_only=True, tag="session:terminate"):
    """Relay request: end a session with its agents."""


Request = (
    CreateSession | SpawnAgent | MessageAgent | TerminateAgent | ListAgents | GetAgent | TerminateSession
)


def read_request(message: dict[str, Any]) -> Request:
    """Return the relay request in a message, or raise Invalid. Unknown fields are ignored."""
    try:
        request: Request = msgspec.convert(message, Request)
    except msgspec.ValidationError as error:
        raise Invalid(f"the relay cannot read {message['type']}: {error}") from None
    return request


def notice_of(event: Event, snapshot: Snapshot, agents_terminated: int = 0) -> Notice | None:
    """Return the relay notice about an event, or None: most events have none."""
    match event.fact:
        case SessionStart():
            return {
                "type": "session:created",
                "sessionId": snapshot.id,
                "timestamp": iso_time(event.timestamp),
            }
        case SessionEnd() as fact:
            return session_terminated_notice(snapshot.id, fact.reason, agents_terminated)
    worker = snapshot.workers.get(event.worker_id or "")
    if worker is None or worker.type != "agent":
        return None
    return _notice_of_agent(event, snapshot.id, worker)


def _notice_of_agent(event: Event, session_id: str, worker: Worker) -> Notice | None:
    """Return the notice for an agent that is ready, wrote text or has ended; None for any other event."""
    about = {"sessionId": session_id, "role": worker.role}
    match event.fact:
        case WorkerReady():
            return {"type": "agent:ready", **about, "workspace": worker.workspace}
        case AgentMessage() as fact:
            answer = {"content": fact.text, "partial": fact.partial}
            return {"type": "agent:response", **about, **answer, "timestamp": iso_time(event.timestamp)}
        case WorkerFailed() as fact:
            return {"type": "error", **about, "error": "remote_fault", "message": fact.error}
        case WorkerExited() as fact:
            return agent_terminated_notice(
                session_id, worker.role, f"exited: {fact.signal or fact.exit_code}"
            )
        case WorkerTerminated() as fact if fact.reason != REPLACED:
            return agent_terminated_notice(session_id, worker.role, fact.reason)
        case _:
            return None


def agent_terminated_notice(session_id: str, role: str, reason: str) -> Notice:
    """Return the relay notice that an agent has ended."""
    reason = REASONS.get(reason, reason)
    return {"type": "agent:terminated", "sessionId": session_id, "role": role, "reason": reason}


def session_terminated_notice(session_id: str, reason: str, agents_terminated: int) -> Notice:
    """Return the relay notice that a session has ended."""
    return {
        "type": "session:terminated",
        "sessionId": session_id,
        "reason": REASONS.get(reason, reason),
        "agentsTerminated": agents_terminated,
    }


def agent_list_notice(snapshot: Snapshot) -> Notice:
    """Return the relay notice with the agents that hold a role; terminated agents hold none."""
    agents = [
        _agent_json(worker)
        for worker in snapshot.workers.values()
        if worker.type == "agent" and worker.state is not WorkerState.TERMINATED
    ]
    return {"type": "agent:list", "agents": agents}


def agent_notice(session_id: str, worker: Worker) -> Notice:
    """Return the relay notice with one agent."""
    return {"type": "agent:get", "sessionId": session_id, "agent": _agent_json(worker)}


def _agent_json(worker: Worker) -> Notice:
    """Return an agent as the relay shows it."""
    return {
        "role": worker.role,
        "state": relay_agent_state(worker.state),
        "workspace": worker.workspace,
        "error": worker.error,
    }


def error_notice(message: dict[str, Any], error: BullpenError) -> Notice:
    """Return the relay notice that a request was refused, with the ids from the request."""
    about: Notice = {name: message[name] for name in ("id", "sessionId", "role") if name in message}
    return {"type": "error", **about, "error": error.code, "message": str(error)}
