"""The demo agent's sessions: made, taken up again, set, prompted and cancelled."""

import asyncio
import uuid
from typing import Any

from ... import __version__
from ...wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Notification, Request
from .acp_connection import AcpConnection, ClientError
from .conversation_store import ConversationStore, DemoConversation
from .requested_actions import HELP, VERBS, RequestedAction, read_wishes
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
    def __init__(self, link: AcpConnection, memory: ConversationStore) -> None:
        self._link = link
        self._memory = memory
        self._capabilities: dict[str, Any] = {}
        self._sessions: dict[str, DemoConversation] = {}
        self._turns: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Until the client's side is closed."""
        async with asyncio.TaskGroup() as tasks:
            async for message in self._link.messages():
                if isinstance(message, Request):
                    self._handle(message, _params(message), tasks)
                else:
                    self._hear(message, _params(message))
            for turn in self._turns.values():
                turn.cancel()

    def _handle(self, request: Request, params: dict[str, Any], tasks: asyncio.TaskGroup) -> None:
        match request.method:
            case "initialize":
                self._initialize(request, params)
            case "session/new":
                self._begin(request, DemoConversation(id=uuid.uuid4().hex, cwd=str(params.get("cwd") or ".")))
            case "authenticate" | "session/close" | "logout":
                self._link.answer(request, {})
            case (
                "session/load"
                | "session/resume"
                | "session/prompt"
                | "session/set_mode"
                | ("session/set_config_option")
            ):
                self._handle_in_session(request, params, tasks)
            case _:
                self._link.refuse(request, METHOD_NOT_FOUND, f"there is no method {request.method}")

    def _handle_in_session(self, request: Request, params: dict[str, Any], tasks: asyncio.TaskGroup) -> None:
        id = str(params.get("sessionId"))
        session = self._sessions.get(id) or self._memory.recall(id)
        if session is None:
            self._link.refuse(request, RESOURCE_NOT_FOUND, f"there is no session {id}")
            return
        match request.method:
            case "session/load":
                for update in session.history:
                    self._link.notify("session/update", {"sessionId": id, "update": update})
                self._begin(request, session)
            case "session/resume":
                self._begin(request, session)
            case "session/prompt" if id in self._turns:
                self._link.refuse(request, INVALID_REQUEST, "one prompt at a time")
            case "session/prompt":
                turn = tasks.create_task(self._take_turn(request, params, session))
                turn.add_done_callback(lambda turn: self._after_turn(turn, request, session))
                self._turns[id] = turn
            case _:
                self._set(request, params, session)

    def _hear(self, notification: Notification, params: dict[str, Any]) -> None:
        turn = self._turns.get(str(params.get("sessionId")))
        if notification.method == "session/cancel" and turn is not None:
            turn.cancel()

    def _initialize(self, request: Request, params: dict[str, Any]) -> None:
        offered = params.get("clientCapabilities")
        self._capabilities = offered if isinstance(offered, dict) else {}
        about = {"name": "bullpen-demo-agent", "title": "Demo", "version": __version__}
        result = {
            "protocolVersion": 1,
            "agentCapabilities": CAPABILITIES,
            "agentInfo": about,
            "authMethods": [],
        }
        self._link.answer(request, result)

    def _begin(self, request: Request, session: DemoConversation) -> None:
        self._sessions[session.id] = session
        settings = {"modes": _modes(session), "configOptions": _options(session)}
        if request.method == "session/new":
            self._memory.keep(session)
            settings["sessionId"] = session.id
        self._link.answer(request, settings)
        words = [
            {"name": verb, "description": f"Does what {verb} says"} for verb in sorted(set(VERBS.values()))
        ]
        self._tell(session, {"sessionUpdate": "available_commands_update", "availableCommands": words})

    def _set(self, request: Request, params: dict[str, Any], session: DemoConversation) -> None:
        match params:
            case {"modeId": str(mode)} | {"configId": "mode", "value": str(mode)} if mode in MODES:
                session.mode = mode
                self._tell(session, {"sessionUpdate": "current_mode_update", "currentModeId": mode})
            case {"configId": "pace", "value": str(pace)} if pace in PACES:
                session.pace = pace
            case _:
                self._link.refuse(request, INVALID_PARAMS, "there is no such mode, option or value")
                return
        self._memory.keep(session)
        options = {"configOptions": _options(session)}
        if request.method == "session/set_mode":  # its answer has no place for them
            self._tell(session, {"sessionUpdate": "config_option_update", **options})
            self._link.answer(request, {})
        else:
            self._link.answer(request, options)

    async def _take_turn(self, request: Request, params: dict[str, Any], session: DemoConversation) -> None:
        error: Exception | None = None
        result = {"stopReason": "cancelled"}
        try:
            result = await self._prompted(_text(params), session)
        except asyncio.CancelledError:
            pass
        except TurnStopped as refusal:
            result = {"stopReason": str(refusal)}
        except (TurnFailed, ClientError, OSError) as failure:
            error = failure
        self._memory.keep(session)  # before the answer: who hears it may end us
        if error is None:
            self._link.answer(request, result)
        else:
            self._link.refuse(request, INTERNAL_ERROR, str(error))

    def _after_turn(self, turn: asyncio.Task[None], request: Request, session: DemoConversation) -> None:
        del self._turns[session.id]
        if turn.cancelled():  # before its first step
            self._link.answer(request, {"stopReason": "cancelled"})

    async def _prompted(self, text: str, session: DemoConversation) -> dict[str, Any]:
        session.turns += 1
        session.history.append(
            {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}}
        )
        wishes = read_wishes(text)
        read = _tokens(session)
        turn = DemoTurn(self._link, session, self._capabilities, hurry=RequestedAction("slow") not in wishes)
        if session.turns == 1:
            self._tell(session, {"sessionUpdate": "session_info_update", "title": text[:60]})
        if RequestedAction("help") in wishes:
            await turn.say(HELP)
        elif not wishes:
            await turn.say(
                f"You said: {text}\n\nI have no model to think with. Say **help** to see what I can do."
            )
        elif wishes == [RequestedAction("slow")]:
            await turn.say("I take my time. " * 20)
        for wish in wishes:
            await turn.grant(wish)
        used = _tokens(session)
        self._tell(session, {"sessionUpdate": "usage_update", "used": used, "size": CONTEXT_SIZE})
        usage = {"inputTokens": read, "outputTokens": used - read, "totalTokens": used}
        return {"stopReason": "end_turn", "usage": usage}

    def _tell(self, session: DemoConversation, update: dict[str, Any]) -> None:
        self._link.notify("session/update", {"sessionId": session.id, "update": update})


def _tokens(session: DemoConversation) -> int:
    """As many as a model would count, about."""
    return sum(len(str(update)) for update in session.history) // 4


def _params(message: Request | Notification) -> dict[str, Any]:
    return message.params if isinstance(message.params, dict) else {}


def _text(params: dict[str, Any]) -> str:
    blocks = params.get("prompt")
    texts = (
        [block.get("text") for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    )
    return "\n".join(text for text in texts if isinstance(text, str))


def _modes(session: DemoConversation) -> dict[str, Any]:
    known = [{"id": id, "name": id.capitalize(), "description": text} for id, text in MODES.items()]
    return {"currentModeId": session.mode, "availableModes": known}


def _options(session: DemoConversation) -> list[dict[str, Any]]:
    return [
        _select("mode", "Mode", "mode", session.mode, MODES),
        _select("pace", "Pace", "model_config", session.pace, PACES),
    ]


def _select(id: str, name: str, category: str, value: str, choices: dict[str, str]) -> dict[str, Any]:
    options = [{"value": key, "name": key.capitalize(), "description": text} for key, text in choices.items()]
    return {
        "id": id,
        "name": name,
        "category": category,
        "type": "select",
        "currentValue": value,
        "options": options,
    }
