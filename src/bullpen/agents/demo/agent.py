"""Handle the ACP requests of the client: create, load and configure sessions, prompt and cancel."""

import asyncio
import uuid
from typing import Any

from ... import __version__
from ...wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Notification, Request
from .acp_connection import AcpConnection, ClientError
from .conversation_store import ConversationStore, DemoConversation
from .requested_actions import HELP, VERBS, RequestedAction, parse_actions
from .turn import DemoTurn, TurnFailed, TurnStopped

RESOURCE_NOT_FOUND = -32002
INVALID_REQUEST = -32600

CAPABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "sessionCapabilities": {"resume": {}, "close": {}},
}
MODES = {"ask": "Asks before it does anything", "auto": "Does it", "plan": "Only says what it would do"}
PACES = {"fast": "As fast as it can", "slow": "Word by word"}
CONTEXT_SIZE = 100_000


class DemoAgent:
    """The demo agent with its sessions and the turns that run in them."""

    def __init__(self, connection: AcpConnection, store: ConversationStore) -> None:
        self._connection = connection
        self._store = store
        self._capabilities: dict[str, Any] = {}
        self._sessions: dict[str, DemoConversation] = {}
        self._turns: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Handle messages until the client closes its side."""
        async with asyncio.TaskGroup() as tasks:
            async for message in self._connection.messages():
                if isinstance(message, Request):
                    self._handle_request(message, _params(message), tasks)
                else:
                    self._handle_notification(message, _params(message))
            for turn in self._turns.values():
                turn.cancel()

    def _handle_request(self, request: Request, params: dict[str, Any], tasks: asyncio.TaskGroup) -> None:
        """Answer a request of the client; requests about a known session go to `_handle_in_session`."""
        match request.method:
            case "initialize":
                self._initialize(request, params)
            case "session/new":
                self._open_session(
                    request, DemoConversation(id=uuid.uuid4().hex, cwd=str(params.get("cwd") or "."))
                )
            case "authenticate" | "session/close" | "logout":
                self._connection.answer(request, {})
            case (
                "session/load"
                | "session/resume"
                | "session/prompt"
                | "session/set_mode"
                | ("session/set_config_option")
            ):
                self._handle_in_session(request, params, tasks)
            case _:
                self._connection.refuse(request, METHOD_NOT_FOUND, f"there is no method {request.method}")

    def _handle_in_session(self, request: Request, params: dict[str, Any], tasks: asyncio.TaskGroup) -> None:
        """Answer a request that names a session: load or resume it, change a setting, or start a turn.

        A prompt is answered when its turn ends; a second one is refused until then.
        """
        id = str(params.get("sessionId"))
        session = self._sessions.get(id) or self._store.load(id)
        if session is None:
            self._connection.refuse(request, RESOURCE_NOT_FOUND, f"there is no session {id}")
            return
        match request.method:
            case "session/load":
                for update in session.history:
                    self._connection.notify("session/update", {"sessionId": id, "update": update})
                self._open_session(request, session)
            case "session/resume":
                self._open_session(request, session)
            case "session/prompt" if id in self._turns:
                self._connection.refuse(request, INVALID_REQUEST, "one prompt at a time")
            case "session/prompt":
                turn = tasks.create_task(self._run_turn(request, params, session))
                turn.add_done_callback(lambda turn: self._after_turn(turn, request, session))
                self._turns[id] = turn
            case _:
                self._change_setting(request, params, session)

    def _handle_notification(self, notification: Notification, params: dict[str, Any]) -> None:
        """Cancel the turn of the session that session/cancel names; ignore every other notification."""
        turn = self._turns.get(str(params.get("sessionId")))
        if notification.method == "session/cancel" and turn is not None:
            turn.cancel()

    def _initialize(self, request: Request, params: dict[str, Any]) -> None:
        """Note the capabilities of the client, and answer with those of this agent."""
        offered = params.get("clientCapabilities")
        self._capabilities = offered if isinstance(offered, dict) else {}
        about = {"name": "bullpen-demo-agent", "title": "Demo", "version": __version__}
        result = {
            "protocolVersion": 1,
            "agentCapabilities": CAPABILITIES,
            "agentInfo": about,
            "authMethods": [],
        }
        self._connection.answer(request, result)

    def _open_session(self, request: Request, session: DemoConversation) -> None:
        """Answer a request that creates, loads or resumes a session."""
        self._sessions[session.id] = session
        settings = {"modes": _modes(session), "configOptions": _options(session)}
        if request.method == "session/new":
            self._store.save(session)
            settings["sessionId"] = session.id
        self._connection.answer(request, settings)
        commands = [
            {"name": verb, "description": f"Does what {verb} says"} for verb in sorted(set(VERBS.values()))
        ]
        self._send_update(
            session, {"sessionUpdate": "available_commands_update", "availableCommands": commands}
        )

    def _change_setting(self, request: Request, params: dict[str, Any], session: DemoConversation) -> None:
        """Answer a request that sets a mode or a configuration option."""
        match params:
            case {"modeId": str(mode)} | {"configId": "mode", "value": str(mode)} if mode in MODES:
                session.mode = mode
                self._send_update(session, {"sessionUpdate": "current_mode_update", "currentModeId": mode})
            case {"configId": "pace", "value": str(pace)} if pace in PACES:
                session.pace = pace
            case _:
                self._connection.refuse(request, INVALID_PARAMS, "there is no such mode, option or value")
                return
        self._store.save(session)
        options = {"configOptions": _options(session)}
        if request.method == "session/set_mode":  # the schema has no options in the answer
            self._send_update(session, {"sessionUpdate": "config_option_update", **options})
            self._connection.answer(request, {})
        else:
            self._connection.answer(request, options)

    async def _run_turn(self, request: Request, params: dict[str, Any], session: DemoConversation) -> None:
        """Run a turn to its end, save the conversation, and then answer the prompt request."""
        error: Exception | None = None
        result = {"stopReason": "cancelled"}
        try:
            result = await self._run_prompt(_text(params), session)
        except asyncio.CancelledError:
            pass
        except TurnStopped as refusal:
            result = {"stopReason": str(refusal)}
        except (TurnFailed, ClientError, OSError) as failure:
            error = failure
        self._store.save(session)  # before the answer: the client may end this process after it
        if error is None:
            self._connection.answer(request, result)
        else:
            self._connection.refuse(request, INTERNAL_ERROR, str(error))

    def _after_turn(self, turn: asyncio.Task[None], request: Request, session: DemoConversation) -> None:
        """Forget a turn that has ended."""
        del self._turns[session.id]
        if turn.cancelled():  # before its first step
            self._connection.answer(request, {"stopReason": "cancelled"})

    async def _run_prompt(self, text: str, session: DemoConversation) -> dict[str, Any]:
        """Perform what a prompt asks for, and return the result of the request."""
        session.turns += 1
        session.history.append(
            {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}}
        )
        actions = parse_actions(text)
        tokens_before = _tokens(session)
        turn = DemoTurn(
            self._connection, session, self._capabilities, is_fast=RequestedAction("slow") not in actions
        )
        if session.turns == 1:
            self._send_update(session, {"sessionUpdate": "session_info_update", "title": text[:60]})
        if RequestedAction("help") in actions:
            await turn.say(HELP)
        elif not actions:
            await turn.say(
                f"You said: {text}\n\nI have no model to think with. Say **help** to see what I can do."
            )
        elif actions == [RequestedAction("slow")]:
            await turn.say("I take my time. " * 20)
        for action in actions:
            await turn.perform(action)
        used = _tokens(session)
        self._send_update(session, {"sessionUpdate": "usage_update", "used": used, "size": CONTEXT_SIZE})
        usage = {"inputTokens": tokens_before, "outputTokens": used - tokens_before, "totalTokens": used}
        return {"stopReason": "end_turn", "usage": usage}

    def _send_update(self, session: DemoConversation, update: dict[str, Any]) -> None:
        """Send a session update to the client."""
        self._connection.notify("session/update", {"sessionId": session.id, "update": update})


def _tokens(session: DemoConversation) -> int:
    """Return roughly how many tokens a model would count."""
    return sum(len(str(update)) for update in session.history) // 4


def _params(message: Request | Notification) -> dict[str, Any]:
    """Return the parameters of a message, or an empty dictionary."""
    return message.params if isinstance(message.params, dict) else {}


def _text(params: dict[str, Any]) -> str:
    """Return the text blocks of a prompt."""
    blocks = params.get("prompt")
    texts = (
        [block.get("text") for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    )
    return "\n".join(text for text in texts if isinstance(text, str))


def _modes(session: DemoConversation) -> dict[str, Any]:
    """Return the modes of the agent as ACP reports them, with the current one."""
    known = [{"id": id, "name": id.capitalize(), "description": text} for id, text in MODES.items()]
    return {"currentModeId": session.mode, "availableModes": known}


def _options(session: DemoConversation) -> list[dict[str, Any]]:
    """Return the configuration options in the format of ACP."""
    return [
        _select("mode", "Mode", "mode", session.mode, MODES),
        _select("pace", "Pace", "model_config", session.pace, PACES),
    ]


def _select(id: str, name: str, category: str, value: str, choices: dict[str, str]) -> dict[str, Any]:
    """Return an ACP configuration option with these choices, given as texts by value."""
    options = [{"value": key, "name": key.capitalize(), "description": text} for key, text in choices.items()]
    return {
        "id": id,
        "name": name,
        "category": category,
        "type": "select",
        "currentValue": value,
        "options": options,
    }
