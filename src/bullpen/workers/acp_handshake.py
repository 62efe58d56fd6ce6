"""Begin a conversation over ACP: initialize, authenticate if that needs no user, and open a session.

Each step is recorded in the same change as the answer to the step before it, so a handshake that a crash
interrupts continues where it was.
"""

import shlex
from collections.abc import Container

from msgspec import Struct

from ..domain.agents import AgentDefinition
from ..domain.conversation import RequestAnswered
from ..domain.conversation_rules import auth_method, login_command, reattach_methods
from ..domain.events import WorkerFailed, WorkerReady
from ..wire import acp_calls
from ..wire.acp_calls import AUTH_REQUIRED, PROTOCOL_VERSION, OutgoingCall
from .conversation_change import ConversationChange

# Sent lines after which no login is tried: some agents ask for one again after each.
MAX_LOGIN_LINES = 16


class Handshake(Struct, frozen=True, kw_only=True):
    """The steps at the start of one run of an agent. `env` are the names of its environment variables."""

    definition: AgentDefinition
    env: Container[str]
    pid: int

    def begin(self, change: ConversationChange) -> None:
        """Send `initialize`, unless an earlier server process has done so."""
        if change.conversation.traffic.sent == 0:
            change.send(acp_calls.initialize(self.definition))

    def continue_after(self, change: ConversationChange, answered: RequestAnswered, now: int) -> None:
        """Send the request that follows from this answer, or end the handshake."""
        match answered.method:
            case "initialize" if answered.error is None:
                self._check_version(change, now)
            case "authenticate" if answered.error is None:
                change.send(self._session_call(change, self._session_methods(change, now)[0]))
            case "session/new" | "session/load" | "session/resume" if answered.error is None:
                change.record(WorkerReady(pid=self.pid))
            case "initialize" | "authenticate" | "session/new" | "session/load" | "session/resume":
                self._after_error(change, answered, now)

    def _check_version(self, change: ConversationChange, now: int) -> None:
        """Open a session if the agent's protocol version is supported, else fail the run."""
        version = (change.conversation.agent or {}).get("protocolVersion", PROTOCOL_VERSION)
        if version != PROTOCOL_VERSION:
            error = (
                f"{self.definition.name} speaks version {version} of ACP, Bullpen speaks {PROTOCOL_VERSION}"
            )
            change.fail_run(WorkerFailed(error=error))
            return
        change.send(self._session_call(change, self._session_methods(change, now)[0]))

    def _after_error(self, change: ConversationChange, answered: RequestAnswered, now: int) -> None:
        """Log in, try the next way to open a session, or fail the run."""
        error = answered.error or {}
        if error.get("code") == AUTH_REQUIRED or answered.method == "authenticate":
            self._log_in(change, answered)
            return
        methods = self._session_methods(change, now)
        others = methods[methods.index(answered.method) + 1 :] if answered.method in methods else []
        if others:
            change.send(self._session_call(change, others[0]))
            return
        change.fail_run(WorkerFailed(error=f"{answered.method} failed: {error.get('message')}"))

    def _log_in(self, change: ConversationChange, answered: RequestAnswered) -> None:
        """Authenticate without the user if possible, else fail the run with a hint how to log in."""
        method = auth_method(change.conversation, self.definition, self.env)
        tries_left = change.conversation.traffic.sent < MAX_LOGIN_LINES
        if method is not None and answered.method != "authenticate" and tries_left:
            change.send(acp_calls.authenticate(method))
            return
        command = login_command(change.conversation, self.definition)
        hint = f"; log in first, run: {shlex.join(command)}" if command else "; log in to it first"
        # The session goes on: the user can log in and restart the agent in it.
        failure = WorkerFailed(error=f"{self.definition.name} needs a login{hint}")
        change.fail_run(failure, may_fail_session=False)

    def _session_methods(self, change: ConversationChange, now: int) -> list[str]:
        """Return the ACP methods that can open a session, in the order to try them."""
        return reattach_methods(change.conversation, self.definition.quirks, now)

    def _session_call(self, change: ConversationChange, method: str) -> OutgoingCall:
        """Return the call of one of the methods that open a session."""
        servers = acp_calls.mcp_servers(self.definition, change.conversation)
        cwd, id = change.worker.workspace, change.conversation.acp_session_id or ""
        match method:
            case "session/resume":
                return acp_calls.session_resume(id, cwd, servers)
            case "session/load":
                return acp_calls.session_load(id, cwd, servers)
            case _:
                return acp_calls.session_new(cwd, servers)
