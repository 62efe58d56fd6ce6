"""Everything a script can let the agent say, want, and do wrong: each `do_…` is a step."""

import asyncio
import json
import os
import signal as signals
import uuid
from collections.abc import Callable
from typing import Any

from .journal import Journal, streamed_in
from .script import Manners, Step
from .wire import Cancelled, Json, RpcError, Turn, Wire, put

OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


class Steps:
    def __init__(self, wire: Wire, manners: Manners, journal: Journal) -> None:
        self.cwd = "."
        self._wire = wire
        self._manners = manners
        self._journal = journal
        self._number = max(streamed_in(journal.before), default=-1) + 1

    async def perform(self, steps: list[Step], turn: Turn) -> None:
        for step in steps:
            self._heed(turn)
            action: Callable[..., Any] = getattr(self, f"do_{step['do']}")
            await action(turn, **{key: value for key, value in step.items() if key != "do"})
        self._heed(turn)

    def _heed(self, turn: Turn) -> None:
        if turn.cancelled.is_set() and self._manners.on_cancel != "ignore":
            raise Cancelled

    # What it says.

    async def do_chunk(
        self, turn: Turn, text: str, kind: str = "agent_message", id: str | None = None
    ) -> None:
        update: Json = {"sessionUpdate": f"{kind}_chunk", "content": {"type": "text", "text": text}}
        if id or self._manners.message_ids:
            update["messageId"] = id or f"message-{turn.id}"
        self._wire.update(update)

    async def do_thought(self, turn: Turn, text: str) -> None:
        await self.do_chunk(turn, text, "agent_thought")

    async def do_stream(self, turn: Turn, n: int, delay: float = 0, size: int = 0) -> None:
        """Numbered chunks; the numbers go on over turns, and over processes with one journal."""
        for _ in range(n):
            self._heed(turn)
            await self.do_chunk(turn, f"<{self._number}>".ljust(size, "."))
            self._number += 1
            await asyncio.sleep(delay)

    async def do_update(self, turn: Turn, update: Json, session: str | None = None) -> None:
        self._wire.update(update, session)

    async def do_notify(self, turn: Turn, method: str, params: Any = None) -> None:
        self._wire.say({"jsonrpc": "2.0", "method": method, "params": params})

    async def do_plan(self, turn: Turn, text: str = "one two") -> None:
        entries = [{"content": word, "priority": "medium", "status": "pending"} for word in text.split()]
        self._wire.update({"sessionUpdate": "plan", "entries": entries})

    async def do_tool(self, turn: Turn, **call: Any) -> None:
        """A whole tool call; with a status it is only announced."""
        call = {"toolCallId": f"call-{uuid.uuid4().hex[:8]}", "title": "work", "kind": "other"} | call
        self._wire.update({"sessionUpdate": "tool_call", **call})
        if "status" not in call:
            id = call["toolCallId"]
            self._wire.update({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"})

    async def do_tool_update(self, turn: Turn, **call: Any) -> None:
        self._wire.update({"sessionUpdate": "tool_call_update", **call})

    # What it wants.

    async def do_ask(self, turn: Turn, method: str, params: Json | None = None, wait: bool = True) -> Any:
        """Any request; the answer is in the journal."""
        future = self._wire.ask(method, {"sessionId": self._wire.session_id} | (params or {}))
        return await self._wire.until(future, turn) if wait else None

    async def do_permission(
        self,
        turn: Turn,
        title: str = "something",
        id: str | None = None,
        announce: bool = True,
        wait: bool = True,
        options: list[Json] | None = None,
    ) -> None:
        """Asks; does the call when it is allowed, fails it when it is not."""
        call = {"toolCallId": id or f"call-{uuid.uuid4().hex[:8]}", "title": title, "kind": "execute"}
        if announce:
            self._wire.update({"sessionUpdate": "tool_call", **call, "status": "pending"})
        params = {"toolCall": call, "options": OPTIONS if options is None else options}
        answer = await self.do_ask(turn, "session/request_permission", params, wait)
        if not wait:
            return
        if answer["outcome"]["outcome"] == "cancelled":
            raise Cancelled
        status = "failed" if answer["outcome"]["optionId"] == "no" else "completed"
        done = {"toolCallId": call["toolCallId"], "status": status}
        self._wire.update({"sessionUpdate": "tool_call_update", **done})

    async def do_question(self, turn: Turn, text: str = "who?", schema: Json | None = None) -> None:
        form = schema or {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        params = {"mode": "form", "message": text, "requestedSchema": form}
        answer = await self.do_ask(turn, "elicitation/create", params)
        await self.do_chunk(turn, f"answered {json.dumps(answer)}")

    async def do_read(self, turn: Turn, text: str) -> None:
        answer = await self.do_ask(turn, "fs/read_text_file", {"path": os.path.join(self.cwd, text)})
        await self.do_chunk(turn, f"read {answer['content']!r}")

    async def do_write(self, turn: Turn, path: str, content: str, twice: bool = False) -> None:
        params = {"path": os.path.join(self.cwd, path), "content": content}
        for _ in range(2 if twice else 1):
            await self.do_ask(turn, "fs/write_text_file", params)

    async def do_terminal(self, turn: Turn, text: str, kill: bool = False, release: bool = True) -> None:
        """A command in a terminal of the client, shown in a tool call."""
        params = {"command": "/bin/sh", "args": ["-c", text], "cwd": self.cwd}
        made = await self.do_ask(turn, "terminal/create", params)
        terminal = {"terminalId": made["terminalId"]}
        call = {"toolCallId": f"call-{made['terminalId']}", "title": text, "kind": "execute"}
        content = [{"type": "terminal", **terminal}]
        self._wire.update({"sessionUpdate": "tool_call", **call, "status": "in_progress", "content": content})
        if kill:
            await self.do_ask(turn, "terminal/kill", terminal)
        ended = await self.do_ask(turn, "terminal/wait_for_exit", terminal)
        said = await self.do_ask(turn, "terminal/output", terminal)
        if release:
            await self.do_ask(turn, "terminal/release", terminal)
        done = {"toolCallId": call["toolCallId"], "status": "completed"}
        self._wire.update({"sessionUpdate": "tool_call_update", **done})
        await self.do_chunk(turn, f"exit {ended.get('exitCode')} said {said['output']!r}")

    # How it waits, answers and misbehaves.

    async def do_sleep(self, turn: Turn, text: str = "0.1") -> None:
        try:
            async with asyncio.timeout(float(text)):
                await turn.cancelled.wait()
        except TimeoutError:
            pass

    async def do_wait_for(self, turn: Turn, text: str) -> None:
        """Until a test has made this file."""
        while not os.path.exists(text):
            await asyncio.sleep(0.01)

    async def do_wait_cancel(self, turn: Turn) -> None:
        await turn.cancelled.wait()

    async def do_answer(self, turn: Turn, result: Any = None, twice: bool = False) -> None:
        """Answers now; steps after this one come after the answer."""
        self._wire.answer(turn, {} if result is None else result)
        if twice:
            turn.answered = False
            self._wire.answer(turn, {} if result is None else result)

    async def do_error(self, turn: Turn, code: int = -32603, text: str = "failed", data: Any = None) -> None:
        raise RpcError(code, text, data)

    async def do_silent(self, turn: Turn) -> None:
        """Never answers."""
        turn.answered = True

    async def do_garbage(self, turn: Turn, text: str = "npm warn: this is no JSON") -> None:
        self._wire.write(text.encode("utf-8", "surrogateescape") + b"\n")

    async def do_bytes(self, turn: Turn, text: str) -> None:
        """Raw bytes in hex, without a newline."""
        self._wire.write(bytes.fromhex(text))

    async def do_huge(self, turn: Turn, size: int, message: bool = False) -> None:
        """A line of a size, of no meaning or in the text of a chunk."""
        if message:
            await self.do_chunk(turn, "x" * size)
        else:
            self._wire.write(b"x" * size + b"\n")

    async def do_slices(self, turn: Turn, text: str, delay: float = 0.01) -> None:
        """A chunk whose line comes in pieces that end in the middle of letters."""
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        params = {"sessionId": self._wire.session_id, "update": update}
        said = {"jsonrpc": "2.0", "method": "session/update", "params": params}
        line = json.dumps(said, ensure_ascii=False).encode() + b"\n"
        self._journal.write("out", line)
        for start in range(0, len(line), 7):
            put(line[start : start + 7])
            await asyncio.sleep(delay)

    async def do_stderr(self, turn: Turn, text: str = "something is wrong", times: int = 1) -> None:
        for _ in range(times):
            os.write(2, text.encode() + b"\n")

    async def do_crash(self, turn: Turn, signal: str = "SIGKILL") -> None:
        self._journal.write("note", f"crash {signal}".encode())
        os.kill(os.getpid(), signals.Signals[signal])

    async def do_exit(self, turn: Turn, code: int = 1) -> None:
        self._journal.write("note", f"exit {code}".encode())
        os._exit(code)

    async def do_stop(self, turn: Turn) -> None:
        os.kill(os.getpid(), signals.SIGSTOP)

    async def do_close_stdout(self, turn: Turn) -> None:
        os.close(1)

    async def do_orphan(self, turn: Turn, text: str = "sleep 1000") -> None:
        """Leaves a process behind in a session of its own."""
        shell = ["/bin/sh", "-c", f"exec {text}"]
        devnull = asyncio.subprocess.DEVNULL
        await asyncio.create_subprocess_exec(
            *shell, start_new_session=True, stdin=devnull, stdout=devnull, stderr=devnull
        )
