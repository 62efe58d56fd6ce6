"""How a conversation is begun: initialize, log in when asked and nobody is needed for it, a session.

Each step follows from the answer to the one before, in the same change: a handshake that a crash cuts in two
goes on where it was.
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

WAYS = ("session/resume", "session/load", "session/new")
# Some agents ask to log in again however often one does.
ENOUGH_LINES = 16


class Handshake(Struct, frozen=True, kw_only=True):
    """What an agent is begun with."""

    definition: AgentDefinition
    env: Container[str]
    pid: int

    def begin(self, exchange: ConversationChange) -> None:
        """The first line of a run; none when it was said before."""
        if exchange.conversation.traffic.sent == 0:
            exchange.say(acp_calls.initialize(self.definition))

    def go_on(self, exchange: ConversationChange, answered: RequestAnswered, now: int) -> None:
        """The step after an answer."""
        match answered.method:
            case "initialize" if answered.error is None:
                self._check_version(exchange, now)
            case "authenticate" if answered.error is None:
                exchange.say(self._way(exchange, self._ways(exchange, now)[0]))
            case "session/new" | "session/load" | "session/resume" if answered.error is None:
                exchange.tell(WorkerReady(pid=self.pid))
            case _ if answered.error is not None and answered.method in ("initialize", "authenticate", *WAYS):
                self._after_error(exchange, answered, now)

    def _check_version(self, exchange: ConversationChange, now: int) -> None:
        version = (exchange.conversation.agent or {}).get("protocolVersion", PROTOCOL_VERSION)
        if version != PROTOCOL_VERSION:
            error = f"{self.definition.name} speaks version {version} of ACP, we speak {PROTOCOL_VERSION}"
            exchange.fail(WorkerFailed(error=error))
            return
        exchange.say(self._way(exchange, self._ways(exchange, now)[0]))

    def _after_error(self, exchange: ConversationChange, answered: RequestAnswered, now: int) -> None:
        error = answered.error or {}
        if error.get("code") == AUTH_REQUIRED or answered.method == "authenticate":
            self._log_in(exchange, answered)
            return
        ways = self._ways(exchange, now)
        rest = ways[ways.index(answered.method) + 1 :] if answered.method in ways else []
        if rest:
            exchange.say(self._way(exchange, rest[0]))
            return
        exchange.fail(WorkerFailed(error=f"{answered.method} failed: {error.get('message')}"))

    def _log_in(self, exchange: ConversationChange, answered: RequestAnswered) -> None:
        method = auth_method(exchange.conversation, self.definition, self.env)
        tries_left = exchange.conversation.traffic.sent < ENOUGH_LINES
        if method is not None and answered.method != "authenticate" and tries_left:
            exchange.say(acp_calls.authenticate(method))
            return
        command = login_command(exchange.conversation, self.definition)
        hint = f"; log in first, run: {shlex.join(command)}" if command else "; log in to it first"
        # It did answer: a person can log in and start it again in the same session.
        failure = WorkerFailed(error=f"{self.definition.name} wants to know who you are{hint}")
        exchange.fail(failure, blames_session=False)

    def _ways(self, exchange: ConversationChange, now: int) -> list[str]:
        return reattach_methods(exchange.conversation, self.definition.quirks, now)

    def _way(self, exchange: ConversationChange, method: str) -> OutgoingCall:
        servers = acp_calls.mcp_servers(self.definition, exchange.conversation)
        cwd, id = exchange.worker.workspace, exchange.conversation.acp_session_id or ""
        match method:
            case "session/resume":
                return acp_calls.session_resume(id, cwd, servers)
            case "session/load":
                return acp_calls.session_load(id, cwd, servers)
            case _:
                return acp_calls.session_new(cwd, servers)
