"""Check messages strictly against the models of the official ACP package.

The models themselves are lenient: they drop fields they do not know, convert types, and replace a wrong
optional value by its default. A message therefore conforms only if its model gives it back unchanged.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from acp import schema
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel


class Shape(NamedTuple):
    """The models of a method: its parameters, and the result of a request."""

    params: Any
    result: Any = None


class SetModelRequest(BaseModel):
    """A request that is not in the schema, the only one that Bullpen sends.

    It goes to agents that offer models without a config option for them. gemini, qwen, codex-acp 2, kimi,
    cline and hermes answer it.
    """

    model_config = ConfigDict(alias_generator=to_camel)

    session_id: str
    model_id: str


class SetModelResponse(BaseModel):
    pass


# The members of the package's unions, without the last one of each, which accepts anything.
ELICITATION_ANSWER = (
    schema.AcceptElicitationResponse | schema.DeclineElicitationResponse | schema.CancelElicitationResponse
)
ELICITATION = schema.CreateFormSessionElicitationRequest | schema.CreateUrlSessionElicitationRequest
CONFIG_OPTION = schema.SetSessionConfigOptionBooleanRequest | schema.SetSessionConfigOptionSelectRequest

TO_AGENT = {
    "initialize": Shape(schema.InitializeRequest, schema.InitializeResponse),
    "authenticate": Shape(schema.AuthenticateRequest, schema.AuthenticateResponse),
    "session/new": Shape(schema.NewSessionRequest, schema.NewSessionResponse),
    "session/load": Shape(schema.LoadSessionRequest, schema.LoadSessionResponse),
    "session/resume": Shape(schema.ResumeSessionRequest, schema.ResumeSessionResponse),
    "session/prompt": Shape(schema.PromptRequest, schema.PromptResponse),
    "session/cancel": Shape(schema.CancelNotification),
    "session/close": Shape(schema.CloseSessionRequest, schema.CloseSessionResponse),
    "session/set_mode": Shape(schema.SetSessionModeRequest, schema.SetSessionModeResponse),
    "session/set_model": Shape(SetModelRequest, SetModelResponse),
    "session/set_config_option": Shape(CONFIG_OPTION, schema.SetSessionConfigOptionResponse),
}
TO_CLIENT = {
    "session/update": Shape(schema.SessionNotification),
    "session/request_permission": Shape(schema.RequestPermissionRequest, schema.RequestPermissionResponse),
    "fs/read_text_file": Shape(schema.ReadTextFileRequest, schema.ReadTextFileResponse),
    "fs/write_text_file": Shape(schema.WriteTextFileRequest, schema.WriteTextFileResponse),
    "terminal/create": Shape(schema.CreateTerminalRequest, schema.CreateTerminalResponse),
    "terminal/output": Shape(schema.TerminalOutputRequest, schema.TerminalOutputResponse),
    "terminal/wait_for_exit": Shape(schema.WaitForTerminalExitRequest, schema.WaitForTerminalExitResponse),
    "terminal/kill": Shape(schema.KillTerminalRequest, schema.KillTerminalResponse),
    "terminal/release": Shape(schema.ReleaseTerminalRequest, schema.ReleaseTerminalResponse),
    "elicitation/create": Shape(ELICITATION, ELICITATION_ANSWER),
}


class Side:
    """One side of a connection: `sent` counts its messages, all of which conform.

    A request or notification is counted by its method, an answer as `method: result` or `method: <code>`.
    """

    def __init__(self, sends: Mapping[str, Shape], answers: Mapping[str, Shape]) -> None:
        self.sent: Counter[str] = Counter()
        self._sends = sends
        self._answers = answers
        self._asked: dict[Any, str] = {}

    def note_request(self, message: dict[str, Any]) -> None:
        """Note a request of the other side, so that the answer to it can be checked."""
        if "method" in message and "id" in message:
            self._asked[message["id"]] = message["method"]

    def check(self, message: dict[str, Any]) -> None:
        """Raise AssertionError unless a message of this side conforms."""
        assert message["jsonrpc"] == "2.0", message
        match message:
            case {"jsonrpc": _, "method": str(method), "params": params, **rest}:
                shape = self._sends[method]
                assert set(rest) == ({"id"} if shape.result else set()), message
                check(shape.params, params)
                self.sent[method] += 1
            case {"jsonrpc": _, "id": id, "result": result, **rest}:
                assert not rest, message
                method = self._asked.pop(id)
                check(self._answers[method].result, result)
                self.sent[f"{method}: result"] += 1
            case {"jsonrpc": _, "id": id, "error": error, **rest}:
                assert not rest, message
                check(schema.Error, error)
                self.sent[f"{self._asked.pop(id)}: {error['code']}"] += 1
            case _:
                raise AssertionError(f"not a JSON-RPC message: {message}")


def check(model: Any, value: Any) -> None:
    """Raise AssertionError unless the model accepts the value and returns it unchanged."""
    adapter = TypeAdapter(model)
    try:
        known = adapter.validate_python(value)
    except ValidationError as error:
        raise AssertionError(f"{error}\nin {value}") from None
    back = adapter.dump_python(known, mode="json", by_alias=True, exclude_unset=True)
    assert _text(back) == _text(value), f"{model} returns this message changed"


def _text(value: Any) -> str:
    """Return the value as JSON text, in which 1, 1.0 and true differ; Python's == treats them as equal."""
    return json.dumps(value, indent=1, sort_keys=True)
