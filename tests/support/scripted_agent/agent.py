"""The scripted agent's requests and turns: what it does by itself, and when the script takes over."""

import asyncio
import os
import signal
from typing import Any

from .journal import Journal, message_of, prompt_text
from .script import Manners, Step, read_steps
from .steps import Steps
from .wire import Cancelled, RpcError, Turn, Wire

GOOD_AGENT: dict[str, Any] = {
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
    def __init__(self, script: dict[str, Any], journal: Journal) -> None:
        self._script = script
        self._manners = Manners(**script.get("agent", {}))
        self._wire = Wire(journal, self._manners)
        self._steps = Steps(self._wire, self._manners, journal)
        self._turns: list[Turn] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._prompts = 0

    async def run(self) -> None:
        """Until its input ends, or the script ends it."""
        if self._manners.ignore_term:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        await self._steps.perform(read_steps(self._script.get("start", [])), Turn({"method": "start"}))
        async with asyncio.TaskGroup() as tasks:
            async for message in self._wire.messages():
                if message["method"] == "session/cancel":
                    for turn in self._turns:
                        turn.cancelled.set()
                elif "id" in message:
                    tasks.create_task(self._handle(Turn(message)))
            self._wire.journal.write("note", b"end of input")
            if self._manners.ignore_eof:
                await asyncio.Event().wait()
            os._exit(0)

    async def _handle(self, turn: Turn) -> None:
        """One request, from its arrival to its answer and what comes after it."""
        try:
            if turn.method == "session/prompt":
                await self._handle_prompt(turn)
            elif turn.method in self._script.get("on", {}):
                await self._steps.perform(read_steps(self._script["on"][turn.method]), turn)
            else:
                await self._do_as_usual(turn)
        except RpcError as error:
            self._wire.answer(turn, error=error.error)

    async def _do_as_usual(self, turn: Turn) -> None:
        params = turn.request.get("params") or {}
        match turn.method:
            case "initialize":
                self._wire.answer(turn, GOOD_AGENT | self._manners.initialize)
            case "session/new":
                self._enter(f"scripted-{os.getpid()}", params)
                await self._steps.perform(read_steps(self._manners.early), turn)
                self._wire.answer(turn, {"sessionId": self._wire.session_id} | self._manners.session)
            case "session/load" | "session/resume":
                self._enter(params["sessionId"], params)
                if self._manners.replay == "both" or turn.method.endswith(self._manners.replay):
                    self._repeat_history()
                self._wire.answer(turn, self._manners.session)
            case "session/set_mode" | "session/set_model" | "authenticate" | "session/close":
                self._wire.answer(turn, {})
            case "session/set_config_option":
                option = {"id": params["configId"], "currentValue": params["value"]}
                self._wire.answer(turn, {"configOptions": [option]})
            case _:
                raise RpcError(-32601, f"no method {turn.method}")

    def _enter(self, session_id: str, params: dict[str, Any]) -> None:
        self._wire.session_id = session_id
        self._steps.cwd = params["cwd"]

    async def _handle_prompt(self, turn: Turn) -> None:
        steps = self._steps_of(turn)
        if self._turns and not await self._make_room():
            return
        self._turns.append(turn)
        self._idle.clear()
        try:
            await self._steps.perform(steps, turn)
            self._wire.answer(turn, {"stopReason": "end_turn"})
        except Cancelled:
            if self._manners.on_cancel == "error":
                raise RpcError(-32603, "interrupted") from None
            self._wire.answer(turn, {"stopReason": "cancelled"})
        finally:
            self._turns.remove(turn)
            if not self._turns:
                self._idle.set()

    async def _make_room(self) -> bool:
        """What happens to a prompt that comes while another runs; whether it is run at all."""
        first = self._turns[0]
        match self._manners.overlap:
            case "refuse":
                raise RpcError(-32600, "busy")
            case "never":
                return False
            case "cancel_first":
                first.cancelled.set()
            case "fail_first":
                self._wire.answer(first, error={"code": -32603, "message": "pushed aside"})
                first.cancelled.set()
        while self._turns:
            await self._idle.wait()
        return True

    def _steps_of(self, turn: Turn) -> list[Step]:
        scripted = self._script.get("prompts", [])
        number, self._prompts = self._prompts, self._prompts + 1
        text = prompt_text(turn.request)
        said = scripted[number] if number < len(scripted) else text
        return read_steps(said) or [{"do": "chunk", "text": f"you said: {text}"}]

    def _repeat_history(self) -> None:
        """What an earlier process with this journal was told and said."""
        for record in self._wire.journal.before:
            message = message_of(record)
            if message.get("method") == "session/prompt":
                content = {"type": "text", "text": prompt_text(message)}
                self._wire.update({"sessionUpdate": "user_message_chunk", "content": content})
            elif message.get("method") == "session/update":
                self._wire.update(message["params"]["update"])
