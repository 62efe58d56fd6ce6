"""Build the lines that Bullpen sends to an agent, each with the fact that records it."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from .. import __version__
from ..domain.agents import AgentDefinition
from ..domain.conversation import NoticeSent, ReplySent, RequestSent
from ..domain.conversation_state import Conversation
from ..domain.events import Fact
from . import jsonrpc

PROTOCOL_VERSION = 1

AUTH_REQUIRED = -32000
RESOURCE_NOT_FOUND = -32002
REQUEST_CANCELLED = -32800


class OutgoingLine(Protocol):
    """A line to the agent. `n` is its number in the outbox."""

    def line(self, n: int) -> bytes:
        """Return the bytes of the line; a request has `n` as its id."""

    def fact(self, n: int) -> Fact:
        """Return the fact that records the line."""


class OutgoingCall(Struct, frozen=True):
    """A request to the agent. `answer_params` are the parameters needed to understand its answer."""

    method: str
    params: dict[str, Any]
    answer_params: dict[str, Any] | None = None

    def line(self, n: int) -> bytes:
        """Return the bytes of the request, with `n` as its id."""
        return jsonrpc.request(n, self.method, self.params)

    def fact(self, n: int) -> Fact:
        """Return the fact that records the line."""
        return RequestSent(n=n, method=self.method, params=self.answer_params)


class OutgoingNotice(Struct, frozen=True):
    """A JSON-RPC notification to the agent."""

    method: str
    params: dict[str, Any]

    def line(self, n: int) -> bytes:
        """Return the bytes of the line."""
        return jsonrpc.notification(self.method, self.params)

    def fact(self, n: int) -> Fact:
        """Return the fact that records the line."""
        return NoticeSent(n=n, method=self.method)


class ErrorReply(Struct, frozen=True):
    """The error in a reply to the agent."""

    code: int
    message: str
    data: Any = None


class OutgoingReply(Struct, frozen=True, kw_only=True):
    """The answer to a request of the agent. `id` names the request if it had to wait for a user."""

    rpc_id: Any
    method: str
    result: Any = None
    fault: ErrorReply | None = None
    id: str | None = None

    def line(self, n: int) -> bytes:
        """Return the bytes of the reply, which has the id of the request and not `n`."""
        if self.fault is not None:
            return jsonrpc.error_response(self.rpc_id, self.fault.code, self.fault.message, self.fault.data)
        return jsonrpc.response(self.rpc_id, self.result)

    def fact(self, n: int) -> Fact:
        """Return the fact that records the line."""
        return ReplySent(n=n, method=self.method, id=self.id)


def initialize(definition: AgentDefinition) -> OutgoingCall:
    """Return the ACP request that begins the handshake with an agent."""
    return OutgoingCall(
        "initialize",
        {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": client_capabilities(definition),
            "clientInfo": {"name": "bullpen", "title": "Bullpen", "version": __version__},
        },
    )


def client_capabilities(definition: AgentDefinition) -> dict[str, Any]:
    """Return the capabilities to announce: some agents misbehave if they are offered too many."""
    offer = definition.offer
    return {
        "fs": {"readTextFile": offer.fs, "writeTextFile": offer.fs},
        "terminal": offer.terminal,
        "elicitation": {"form": {}},
        "session": {"configOptions": {"boolean": {}}},
        "auth": {"terminal": True},
    }


def authenticate(method_id: str) -> OutgoingCall:
    """Return the ACP request that authenticates with one of the agent's methods."""
    return OutgoingCall("authenticate", {"methodId": method_id}, {"methodId": method_id})


def session_new(cwd: str, servers: Sequence[dict[str, Any]]) -> OutgoingCall:
    """Return the ACP request that creates a session of the agent. `servers` are MCP servers."""
    return OutgoingCall("session/new", {"cwd": cwd, "mcpServers": list(servers)})


def session_load(acp_session_id: str, cwd: str, servers: Sequence[dict[str, Any]]) -> OutgoingCall:
    """Return the ACP request that loads a session; the agent repeats its history."""
    return _reattach("session/load", acp_session_id, cwd, servers)


def session_resume(acp_session_id: str, cwd: str, servers: Sequence[dict[str, Any]]) -> OutgoingCall:
    """Return the ACP request that resumes a session without its history."""
    return _reattach("session/resume", acp_session_id, cwd, servers)


def session_prompt(
    acp_session_id: str,
    text: str,
    images: Iterable[tuple[str, str]] = (),
    files: Iterable[tuple[str, str]] = (),
) -> OutgoingCall:
    """Return the ACP request that sends a prompt.

    `images` are pairs of media type and base64 data, `files` pairs of the name and the URI of a file.
    """
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
    blocks += [{"type": "image", "mimeType": kind, "data": data} for kind, data in images]
    blocks += [{"type": "resource_link", "name": name, "uri": uri} for name, uri in files]
    return OutgoingCall("session/prompt", {"sessionId": acp_session_id, "prompt": blocks})


def session_cancel(acp_session_id: str) -> OutgoingNotice:
    """Return the ACP notification that cancels the running turn."""
    return OutgoingNotice("session/cancel", {"sessionId": acp_session_id})


def set_mode(acp_session_id: str, mode_id: str) -> OutgoingCall:
    """Return the ACP request that changes the agent's mode."""
    change = {"modeId": mode_id}
    return OutgoingCall("session/set_mode", {"sessionId": acp_session_id, **change}, change)


def set_model(acp_session_id: str, model_id: str) -> OutgoingCall:
    """Return the ACP request that changes the agent's model.

    It is no longer in the schema; agents that have models but no configuration option for them understand it.
    """
    change = {"modelId": model_id}
    return OutgoingCall("session/set_model", {"sessionId": acp_session_id, **change}, change)


def set_config_option(acp_session_id: str, option_id: str, value: str | bool) -> OutgoingCall:
    """Return the ACP request that changes a configuration option of the agent."""
    change: dict[str, Any] = {"configId": option_id, "value": value}
    params = {"sessionId": acp_session_id, **change}
    if isinstance(value, bool):
        params["type"] = "boolean"
    return OutgoingCall("session/set_config_option", params, change)


def mcp_servers(definition: AgentDefinition, state: Conversation) -> list[dict[str, Any]]:
    """Return the servers of the definition that this agent can reach, with all fields the schema requires."""
    servers = []
    for server in definition.mcp_servers:
        if (kind := server.get("type", "stdio")) == "stdio":
            servers.append({"args": [], "env": [], **server})
        elif state.has_capability("mcpCapabilities", str(kind)):
            servers.append({"headers": [], **server})
    return servers


def permission_result(option_id: str | None) -> dict[str, Any]:
    """Return the result for a permission request: the chosen option, or cancelled for None."""
    if option_id is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


def question_result(status: str, answer: Any = None) -> dict[str, Any]:
    """Return the result for a form: `accepted` with its values, `declined` or `cancelled`."""
    match status:
        case "accepted":
            return {"action": "accept", "content": answer if isinstance(answer, dict) else {}}
        case "declined":
            return {"action": "decline"}
        case _:
            return {"action": "cancel"}


def cancellation_replies(state: Conversation) -> list[OutgoingReply]:
    """Return the replies that cancel every open permission and question of an agent."""
    replies = []
    for id, ask in state.traffic.asks.items():
        if id in state.permissions:
            result = permission_result(None)
        elif id in state.questions:
            result = question_result("cancelled")
        else:
            continue
        replies.append(OutgoingReply(rpc_id=ask.rpc_id, method=ask.method, result=result, id=id))
    return replies


def _reattach(method: str, acp_session_id: str, cwd: str, servers: Sequence[dict[str, Any]]) -> OutgoingCall:
    """Return the ACP request that loads or resumes a session."""
    params = {"sessionId": acp_session_id, "cwd": cwd, "mcpServers": list(servers)}
    return OutgoingCall(method, params, {"sessionId": acp_session_id})
