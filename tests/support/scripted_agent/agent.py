"""Handle the requests and turns of the scripted agent: by default, or with the steps of its script."""

import os
import signal

from .connection import AgentConnection, Cancelled, RpcError, Turn
from .journal import Journal, message_of, prompt_text
from .json_types import Json
from .script import AgentBehavior, Step, read_steps
from .steps import Steps
from .tasks import Tasks, Wait

INITIALIZE_RESULT: Json = {
    "protocolVersion": 1,
    "agentInfo": {"name": "scripted", "version": "1"},
    "authMethods": [],
    "agentCapabilities": {
        "loadSession": True,
        "promptCapabilities": {"image": True},
        "sessionCapabilities": {"resume": {}},
    },
}


class ScriptedAgent:
    """Runs the script.

    `_received` are the prompts that were read; a cancel that is read later reaches each of them. `_turn` is
    the one of them whose steps run.
    """

    def __init__(self, script: Json, journal: Journal) -> None:
        self._script = script
        self._behavior = AgentBehavior(script.get("agent", {}))
        self._connection = AgentConnection(journal, self._behavior)
        self._steps = Steps(self._connection, self._behavior, journal)
        self._tasks = Tasks()
        self._received: set[Turn] = set()
        self._turn: Turn | None = None
        self._prompts = 0

    def run(self) -> None:
        """Handle requests until the input or the script ends the process."""
        if self._behavior.ignore_term:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._tasks.start(self._handle_input())
        self._tasks.run()

    async def _handle_input(self) -> None:
        await self._steps.perform(read_steps(self._script.get("start", [])), Turn({"method": "start"}))
        async for message in self._connection.messages():
            if message["method"] == "session/cancel":
                for turn in self._received:
                    turn.cancelled = True
            elif "id" in message:
                self._tasks.start(self._handle(Turn(message)))
        self._connection.journal.write("note", b"end of input")
        if self._behavior.ignore_eof:
            await Wait()
        os._exit(0)

    async def _handle(self, turn: Turn) -> None:
        """Handle one request, with the steps that follow its answer."""
        try:
            if turn.method == "session/prompt":
                self._received.add(turn)
                await self._handle_prompt(turn)
            elif turn.method in self._script.get("on", {}):
                await self._steps.perform(read_steps(self._script["on"][turn.method]), turn)
            else:
                await self._handle_by_default(turn)
        except RpcError as error:
            self._connection.answer(turn, error=error.error)
        finally:
            self._received.discard(turn)

    async def _handle_by_default(self, turn: Turn) -> None:
        params = turn.request.get("params") or {}
        match turn.method:
            case "initialize":
                self._connection.answer(turn, INITIALIZE_RESULT | self._behavior.initialize)
            case "session/new":
                self._open_session(f"scripted-{os.urandom(16).hex()}", params)
                await self._steps.perform(read_steps(self._behavior.early), turn)
                self._connection.answer(
                    turn, {"sessionId": self._connection.session_id} | self._behavior.session
                )
            case "session/load" | "session/resume":
                self._open_session(params["sessionId"], params)
                if self._behavior.replay == "both" or turn.method.endswith(self._behavior.replay):
                    self._repeat_history()
                self._connection.answer(turn, self._behavior.session)
            case "session/set_mode" | "session/set_model" | "authenticate" | "session/close":
                self._connection.answer(turn, {})
            case "session/set_config_option":
                option = {"id": params["configId"], "currentValue": params["value"]}
                self._connection.answer(turn, {"configOptions": [option]})
            case _:
                raise RpcError(-32601, f"no method {turn.method}")

    def _open_session(self, session_id: str, params: Json) -> None:
        self._connection.session_id = session_id
        self._steps.cwd = params["cwd"]

    async def _handle_prompt(self, turn: Turn) -> None:
        steps = self._steps_of(turn)
        if self._turn and not await self._end_turn(self._turn):
            return
        self._turn = turn
        try:
            await self._steps.perform(steps, turn)
            self._connection.answer(turn, {"stopReason": "end_turn"})
        except Cancelled:
            if self._behavior.on_cancel == "error":
                raise RpcError(-32603, "interrupted") from None
            self._connection.answer(turn, {"stopReason": "cancelled"})
        finally:
            self._turn = None

    async def _end_turn(self, first: Turn) -> bool:
        """Apply `overlap` to a prompt that arrives during a turn; return whether the prompt is run."""
        match self._behavior.overlap:
            case "refuse":
                raise RpcError(-32600, "busy")
            case "never":
                return False
            case "cancel_first":
                first.cancelled = True
            case "fail_first":
                self._connection.answer(first, error={"code": -32603, "message": "pushed aside"})
                first.cancelled = True
        await Wait(lambda: self._turn is None)
        return True

    def _steps_of(self, turn: Turn) -> list[Step]:
        scripted = self._script.get("prompts", [])
        number, self._prompts = self._prompts, self._prompts + 1
        text = prompt_text(turn.request)
        steps = scripted[number] if number < len(scripted) else text
        return read_steps(steps) or [{"do": "chunk", "text": f"you said: {text}"}]

    def _repeat_history(self) -> None:
        """Send the prompts and updates of earlier processes with this journal."""
        for record in self._connection.journal.before:
            message = message_of(record)
            if message.get("method") == "session/prompt":
                content = {"type": "text", "text": prompt_text(message)}
                self._connection.update({"sessionUpdate": "user_message_chunk", "content": content})
            elif message.get("method") == "session/update":
                self._connection.update(message["params"]["update"])
