"""The steps of scripts: each method `do_…` sends updates, makes a request, or violates the protocol."""

import json
import os
import signal as signals
from collections.abc import Callable

from .connection import AgentConnection, Cancelled, RpcError, Turn, write_fully
from .journal import Journal, streamed_in
from .json_types import Any, Json
from .script import AgentBehavior, Step
from .tasks import Wait

OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


class Steps:
    """Performs steps: `{"do": "chunk", …}` calls `do_chunk` with the other keys as arguments."""

    def __init__(self, connection: AgentConnection, behavior: AgentBehavior, journal: Journal) -> None:
        self.cwd = "."
        self._connection = connection
        self._behavior = behavior
        self._journal = journal
        self._number = max(streamed_in(journal.before), default=-1) + 1

    async def perform(self, steps: list[Step], turn: Turn) -> None:
        for step in steps:
            self._check_cancelled(turn)
            action: Callable[..., Any] = getattr(self, f"do_{step['do']}")
            await action(turn, **{key: value for key, value in step.items() if key != "do"})
        self._check_cancelled(turn)

    def _check_cancelled(self, turn: Turn) -> None:
        if turn.cancelled and self._behavior.on_cancel != "ignore":
            raise Cancelled

    # Updates and notifications.

    async def do_chunk(
        self, turn: Turn, text: str, kind: str = "agent_message", id: str | None = None
    ) -> None:
        update: Json = {"sessionUpdate": f"{kind}_chunk", "content": {"type": "text", "text": text}}
        if id or self._behavior.message_ids:
            update["messageId"] = id or f"message-{turn.id}"
        self._connection.update(update)

    async def do_thought(self, turn: Turn, text: str) -> None:
        await self.do_chunk(turn, text, "agent_thought")

    async def do_stream(self, turn: Turn, n: int, delay: float = 0, size: int = 0) -> None:
        """Send numbered chunks. The numbers continue over turns, and over processes with the same journal."""
        for _ in range(n):
            self._check_cancelled(turn)
            await self.do_chunk(turn, f"<{self._number}>".ljust(size, "."))
            self._number += 1
            await Wait(seconds=delay)

    async def do_update(self, turn: Turn, update: Json, session: str | None = None) -> None:
        self._connection.update(update, session)

    async def do_notify(self, turn: Turn, method: str, params: Any = None) -> None:
        self._connection.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def do_plan(self, turn: Turn, text: str = "one two") -> None:
        entries = [{"content": word, "priority": "medium", "status": "pending"} for word in text.split()]
        self._connection.update({"sessionUpdate": "plan", "entries": entries})

    async def do_tool(self, turn: Turn, **call: Any) -> None:
        """Send a tool call and its completion; a call with a status is not completed."""
        call = {"toolCallId": f"call-{os.urandom(4).hex()}", "title": "work", "kind": "other"} | call
        self._connection.update({"sessionUpdate": "tool_call", **call})
        if "status" not in call:
            id = call["toolCallId"]
            self._connection.update(
                {"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"}
            )

    async def do_tool_update(self, turn: Turn, **call: Any) -> None:
        self._connection.update({"sessionUpdate": "tool_call_update", **call})

    # Requests to the client.

    async def do_ask(self, turn: Turn, method: str, params: Json | None = None, wait: bool = True) -> Any:
        """Make any request. The journal has its answer."""
        id = self._connection.request(method, {"sessionId": self._connection.session_id} | (params or {}))
        return await self._connection.answer_to(id, turn) if wait else None

    async def do_permission(
        self,
        turn: Turn,
        title: str = "something",
        id: str | None = None,
        announce: bool = True,
        wait: bool = True,
        options: list[Json] | None = None,
    ) -> None:
        """Request a permission for a tool call; complete the call if it is allowed, else fail it."""
        call = {"toolCallId": id or f"call-{os.urandom(4).hex()}", "title": title, "kind": "execute"}
        if announce:
            self._connection.update({"sessionUpdate": "tool_call", **call, "status": "pending"})
        params = {"toolCall": call, "options": OPTIONS if options is None else options}
        answer = await self.do_ask(turn, "session/request_permission", params, wait)
        if not wait:
            return
        if answer["outcome"]["outcome"] == "cancelled":
            raise Cancelled
        status = "failed" if answer["outcome"]["optionId"] == "no" else "completed"
        done = {"toolCallId": call["toolCallId"], "status": status}
        self._connection.update({"sessionUpdate": "tool_call_update", **done})

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
        """Run a command in a terminal of the client, shown in a tool call."""
        params = {"command": "/bin/sh", "args": ["-c", text], "cwd": self.cwd}
        made = await self.do_ask(turn, "terminal/create", params)
        terminal = {"terminalId": made["terminalId"]}
        call = {"toolCallId": f"call-{made['terminalId']}", "title": text, "kind": "execute"}
        content = [{"type": "terminal", **terminal}]
        self._connection.update(
            {"sessionUpdate": "tool_call", **call, "status": "in_progress", "content": content}
        )
        if kill:
            await self.do_ask(turn, "terminal/kill", terminal)
        ended = await self.do_ask(turn, "terminal/wait_for_exit", terminal)
        output = await self.do_ask(turn, "terminal/output", terminal)
        if release:
            await self.do_ask(turn, "terminal/release", terminal)
        done = {"toolCallId": call["toolCallId"], "status": "completed"}
        self._connection.update({"sessionUpdate": "tool_call_update", **done})
        await self.do_chunk(turn, f"exit {ended.get('exitCode')} said {output['output']!r}")

    # Waiting, answering, and violations of the protocol.

    async def do_sleep(self, turn: Turn, text: str = "0.1") -> None:
        await Wait(lambda: turn.cancelled, float(text))

    async def do_wait_for(self, turn: Turn, text: str) -> None:
        """Wait until the test has created this file."""
        while not os.path.exists(text):
            await Wait(seconds=0.01)

    async def do_wait_cancel(self, turn: Turn) -> None:
        await Wait(lambda: turn.cancelled)

    async def do_answer(self, turn: Turn, result: Any = None, twice: bool = False) -> None:
        """Answer now; the following steps run after the answer."""
        self._connection.answer(turn, {} if result is None else result)
        if twice:
            turn.answered = False
            self._connection.answer(turn, {} if result is None else result)

    async def do_error(self, turn: Turn, code: int = -32603, text: str = "failed", data: Any = None) -> None:
        raise RpcError(code, text, data)

    async def do_silent(self, turn: Turn) -> None:
        """Never answer the request."""
        turn.answered = True

    async def do_garbage(self, turn: Turn, text: str = "npm warn: this is no JSON") -> None:
        self._connection.write(text.encode("utf-8", "surrogateescape") + b"\n")

    async def do_bytes(self, turn: Turn, text: str) -> None:
        """Write raw bytes, given in hex, without a newline."""
        self._connection.write(bytes.fromhex(text))

    async def do_huge(self, turn: Turn, size: int, message: bool = False) -> None:
        """Send a very long line: not JSON, or a chunk with a very long text."""
        if message:
            await self.do_chunk(turn, "x" * size)
        else:
            self._connection.write(b"x" * size + b"\n")

    async def do_slices(self, turn: Turn, text: str, delay: float = 0.01) -> None:
        """Write the line of a chunk in pieces of 7 bytes, which split multibyte characters."""
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        params = {"sessionId": self._connection.session_id, "update": update}
        message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
        line = json.dumps(message, ensure_ascii=False).encode() + b"\n"
        self._journal.write("out", line)
        for start in range(0, len(line), 7):
            write_fully(line[start : start + 7])
            await Wait(seconds=delay)

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
        """Start a process in its own process session, which outlives the agent."""
        from subprocess import DEVNULL, Popen

        shell = ["/bin/sh", "-c", f"exec {text}"]
        Popen(shell, start_new_session=True, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
