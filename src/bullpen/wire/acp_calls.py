"""What we say to an agent: requests, notices and replies, each with the fact that tells of its line."""

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
    """One line to the agent; `n` is its number in the outbox."""

    def line(self, n: int) -> bytes: ...

    def fact(self, n: int) -> Fact: ...


class OutgoingCall(Struct, frozen=True):
    """A request; `kept` are the parameters its answer has to be understood with."""

    method: str
    params: dict[str, Any]
    kept: dict[str, Any] | None = None

    def line(self, n: int) -> bytes:
        return jsonrpc.request(n, self.method, self.params)

    def fact(self, n: int) -> Fact:
        return RequestSent(n=n, method=self.method, params=self.kept)


class OutgoingNotice(Struct, frozen=True):
    method: str
    params: dict[str, Any]

    def line(self, n: int) -> bytes:
        return jsonrpc.notification(self.method, self.params)

    def fact(self, n: int) -> Fact:
        return NoticeSent(n=n, method=self.method)


class ErrorReply(Struct, frozen=True):
    code: int
    message: str
    data: Any = None


class OutgoingReply(Struct, frozen=True, kw_only=True):
    """The answer to a request of the agent; `id` is our name for it when it had to wait."""

    rpc_id: Any
    method: str
    result: Any = None
    fault: ErrorReply | None = None
    id: str | None = None

    def line(self, n: int) -> bytes:
        if self.fault is not None:
            return jsonrpc.error_response(self.rpc_id, self.fault.code, self.fault.message, self.fault.data)
        return jsonrpc.response(self.rpc_id, self.result)

    def fact(self, n: int) -> Fact:
        return ReplySent(n=n, method=self.method, id=self.id)


def initialize(definition: AgentDefinition) -> OutgoingCall:
    return OutgoingCall(
        "initialize",
        {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": client_capabilities(definition),
            "clientInfo": {"name": "bullpen", "title": "Bullpen", "version": __version__},
        },
    )


def client_capabilities(definition: AgentDefinition) -> dict[str, Any]:
    """What this agent is offered: some misbehave when they are offered more than they can bear."""
    offer = definition.offer
    return {
        "fs": {"readTextFile": offer.fs, "writeTextFile": offer.fs},
        "terminal": offer.terminal,
        "elicitation": {"form": {}},
        "session": {"configOptions": {"boolean": {}}},
        "auth": {"terminal": True},
    }


def authenticate(method_id: str) -> OutgoingCall:
    return OutgoingCall("authenticate", {"methodId": method_id}, {"methodId": method_id})


def session_new(cwd: str, servers: Sequence[dict[str, Any]]) -> OutgoingCall:
    return OutgoingCall("session/new", {"cwd": cwd, "mcpServers": list(servers)})


def session_load(acp_session_id: str, cwd: str, servers: Sequence[dict[str, Any]]) -> OutgoingCall:
    return _reattach("session/load", acp_session_id, cwd, servers)


def session_resume(acp_session_id: str, cwd: str, servers: Sequence[dict[str, Any]]) -> OutgoingCall:
    return _reattach("session/resume", acp_session_id, cwd, servers)


def session_prompt(acp_session_id: str, text: str, images: Iterable[tuple[str, str]] = ()) -> OutgoingCall:
    """A prompt with images, each as its type and its base64."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
    blocks += [{"type": "image", "mimeType": kind, "data": data} for kind, data in images]
    return OutgoingCall("session/prompt", {"sessionId": acp_session_id, "prompt": blocks})


def session_cancel(acp_session_id: str) -> OutgoingNotice:
    return OutgoingNotice("session/cancel", {"sessionId": acp_session_id})


def set_mode(acp_session_id: str, mode_id: str) -> OutgoingCall:
    kept = {"modeId": mode_id}
    return OutgoingCall("session/set_mode", {"sessionId": acp_session_id, **kept}, kept)


def set_model(acp_session_id: str, model_id: str) -> OutgoingCall:
    """Not in the schema any more, but what agents understand that have models and no option for them."""
    kept = {"modelId": model_id}
    return OutgoingCall("session/set_model", {"sessionId": acp_session_id, **kept}, kept)


def set_config_option(acp_session_id: str, option_id: str, value: str | bool) -> OutgoingCall:
    kept: dict[str, Any] = {"configId": option_id, "value": value}
    params = {"sessionId": acp_session_id, **kept}
    if isinstance(value, bool):
        params["type"] = "boolean"
    return OutgoingCall("session/set_config_option", params, kept)


def mcp_servers(definition: AgentDefinition, state: Conversation) -> list[dict[str, Any]]:
    """The servers of the definition that this agent can reach."""
    return [
        server
        for server in definition.mcp_servers
        if (kind := server.get("type", "stdio")) == "stdio"
        or state.has_capability("mcpCapabilities", str(kind))
    ]


def permission_result(option_id: str | None) -> dict[str, Any]:
    """The chosen option, or that the question is withdrawn."""
    if option_id is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


def question_result(status: str, answer: Any = None) -> dict[str, Any]:
    """What became of a form: `accepted` with its values, `declined` or `cancelled`."""
    match status:
        case "accepted":
            return {"action": "accept", "content": answer if isinstance(answer, dict) else {}}
        case "declined":
            return {"action": "decline"}
        case _:
            return {"action": "cancel"}


def withdrawn(state: Conversation) -> list[OutgoingReply]:
    """The answers to every open permission and question when nobody will answer them any more."""
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
    params = {"sessionId": acp_session_id, "cwd": cwd, "mcpServers": list(servers)}
    return OutgoingCall(method, params, {"sessionId": acp_session_id})
