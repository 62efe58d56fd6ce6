"""Run one turn of the demo agent: stream messages, call tools and ask questions over ACP."""

import asyncio
import os
import uuid
from typing import Any

from .acp_connection import AcpConnection
from .conversation_store import DemoConversation
from .requested_actions import RequestedAction
from .tool_runner import ToolRunner

WORD_SECONDS = {"fast": 0.005, "slow": 0.2}  # from one streamed word to the next
PICTURE = (  # four squares, PNG
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAIUlEQVR42mMQ0ajAijQWRGFFDKMaaKIBlwQug0Y1"
    "0EQDAKUZ6wF7FzrAAAAAAElFTkSuQmCC"
)
OPTIONS = [
    {"optionId": "once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
TOUR = ["Ask for permission", "Change a file", "Show the diff"]
TOUR_FILE = "hello.md"
TOUR_BEFORE = f"""\
This is how an agent works here. It has made the plan above.

Now it wants to change `{TOUR_FILE}`, and asks you first: the card below shows the change. Press **Allow**, \
or **Reject** and nothing happens."""
TOUR_AFTER = f"""\
The diff above shows what has changed in `{TOUR_FILE}`. In a git repository, the panel Changes shows the \
changes of the whole session, and you can comment on lines of it.

That was the tour. Say **help** to see what else I can do, or start a session with one of your projects."""
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 1},
        "colour": {"type": "string", "title": "A colour", "enum": ["red", "green", "blue"]},
        "sure": {"type": "boolean", "title": "Are you sure?", "default": True},
    },
    "required": ["name"],
}


class TurnStopped(Exception):
    """The turn ends with the stop reason that this exception names."""


class TurnFailed(Exception):
    """The turn ends with an error."""


class DemoTurn:
    """One turn: it performs the actions of one prompt in one session."""

    def __init__(
        self,
        connection: AcpConnection,
        session: DemoConversation,
        capabilities: dict[str, Any],
        is_fast: bool,
    ) -> None:
        self._connection = connection
        self._session = session
        self._capabilities = capabilities
        self._tools = ToolRunner(connection, session, capabilities)
        self._word_seconds = WORD_SECONDS[session.pace] if is_fast else WORD_SECONDS["slow"]

    def update(self, update: dict[str, Any]) -> None:
        """Send a session update to the client."""
        self._connection.notify("session/update", {"sessionId": self._session.id, "update": update})

    async def say(self, text: str, kind: str = "agent_message_chunk") -> None:
        """Stream a text word by word, and add it to the conversation."""
        message = uuid.uuid4().hex
        words = text.split(" ")
        for number, word in enumerate(words):
            piece = word if number == len(words) - 1 else f"{word} "
            content = {"type": "text", "text": piece}
            self.update({"sessionUpdate": kind, "messageId": message, "content": content})
            await asyncio.sleep(self._word_seconds)
        self._remember({"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    async def perform(self, action: RequestedAction) -> None:
        """Perform one action; some raise TurnFailed or TurnStopped, or end the process."""
        match action.verb:
            case "think":
                await self.say("Let me think about that for a moment …", "agent_thought_chunk")
            case "tour":
                await self._tour()
            case "plan":
                await self._plan()
            case "edit":
                await self._edit(action.object)
            case "run":
                await self._run(action.object)
            case "ask":
                await self._ask_permission()
            case "question":
                await self._ask_form()
            case "image":
                self._show_picture()
            case "long":
                await self.say(" ".join(f"word{number}" for number in range(1, 201)))
            case "fail":
                raise TurnFailed("you asked me to fail")
            case "refuse":
                raise TurnStopped("refusal")
            case "crash":
                os._exit(3)

    async def _plan(self) -> None:
        """Send a plan and complete its entries one by one."""
        steps = ["Look around", "Do the work", "Look again"]
        for done in range(len(steps) + 1):
            self._update_plan(steps, done)
            await asyncio.sleep(self._word_seconds)
        await self.say("The plan is done.")

    def _update_plan(self, steps: list[str], done: int) -> None:
        """Send a plan of which the first entries are done; remember it when all are."""
        update = {"sessionUpdate": "plan", "entries": _entries(steps, done)}
        self.update(update)
        if done == len(steps):
            self._remember(update)

    async def _tour(self) -> None:
        """Explain a change while it is made: the plan, the permission and the diff."""
        self._update_plan(TOUR, 0)
        await self.say(TOUR_BEFORE)
        if await self._edit(TOUR_FILE):
            self._update_plan(TOUR, len(TOUR))
            await self.say(TOUR_AFTER)
        else:
            await self.say(
                "Nothing has changed. Say **tour** to see it again, or **help** for what else I can do."
            )

    async def _edit(self, name: str) -> bool:
        """Add a line to a file, if the user allows it; return whether that was done."""
        path = self._tools.resolve(name)
        if path is None:
            await self.say(f"`{name}` lies outside of my workspace; I leave it alone.")
            return False
        old = await self._tools.read(path)
        new = f"{old}The demo agent was here ({old.count('demo agent') + 1}).\n"
        diff = {"type": "diff", "path": path, "oldText": old, "newText": new}
        call = self._begin_call(f"Edit {name}", "edit", content=[diff], locations=[{"path": path}])
        if not await self._is_allowed(call):
            return False
        await self._tools.write(path, new)
        self._end_call(call, "completed", content=[diff])
        await self.say(f"I have added a line to `{name}`.")
        return True

    async def _run(self, command: str) -> None:
        """Run a command, if the user allows it."""
        call = self._begin_call(command, "execute", rawInput={"command": command})
        if not await self._is_allowed(call):
            return
        output, code = await self._tools.run(command, lambda terminal: self._show_terminal(call, terminal))
        content = [{"type": "content", "content": {"type": "text", "text": f"```\n{output}\n```"}}]
        self._end_call(call, "completed" if code == 0 else "failed", content=content)
        await self.say(f"`{command}` ended with exit code {code}.")

    async def _ask_permission(self) -> None:
        """Request a permission from the user, and ignore the answer."""
        call = self._begin_call("Do something that needs a permission", "other")
        if await self._is_allowed(call, always_ask=True):
            self._end_call(call, "completed")
            await self.say("Thank you. I did nothing with it.")

    async def _ask_form(self) -> None:
        """Ask the user to fill in a form, if the client supports it."""
        if "form" not in (self._capabilities.get("elicitation") or {}):
            await self.say("I would ask you something, but your client shows no forms.")
            return
        params = {"mode": "form", "message": "Tell me about yourself", "requestedSchema": FORM}
        answer = await self._connection.call("elicitation/create", {"sessionId": self._session.id, **params})
        content = answer.get("content") if isinstance(answer, dict) else None
        if isinstance(content, dict):
            await self.say(f"Hello {content.get('name')}!")
        else:
            await self.say("All right, keep it to yourself.")

    def _show_picture(self) -> None:
        """Send a small picture as a part of the answer."""
        content = {"type": "image", "mimeType": "image/png", "data": PICTURE}
        self.update({"sessionUpdate": "agent_message_chunk", "content": content})

    def _show_terminal(self, call: dict[str, Any], terminal_id: str) -> None:
        """Attach the terminal of a command to its tool call, so that the client shows its output."""
        content = [{"type": "terminal", "terminalId": terminal_id}]
        changes = {"toolCallId": call["toolCallId"], "status": "in_progress", "content": content}
        self.update({"sessionUpdate": "tool_call_update", **changes})

    def _begin_call(self, title: str, kind: str, **more: Any) -> dict[str, Any]:
        """Send a new tool call and return it."""
        call = {"toolCallId": uuid.uuid4().hex, "title": title, "kind": kind, "status": "pending", **more}
        self.update({"sessionUpdate": "tool_call", **call})
        return call

    def _end_call(self, call: dict[str, Any], status: str, **more: Any) -> None:
        """Send the end of a tool call, and add it to the conversation."""
        changes = {"toolCallId": call["toolCallId"], "status": status, **more}
        self.update({"sessionUpdate": "tool_call_update", **changes})
        self._remember({"sessionUpdate": "tool_call", **call, "status": status, **more})

    async def _is_allowed(self, call: dict[str, Any], always_ask: bool = False) -> bool:
        """Return whether a tool call is allowed; ask the user unless the answer was "always" before.

        The mode `plan` allows nothing and `auto` everything, without a question. Raise CancelledError if the
        turn is cancelled instead of an answer.
        """
        session = self._session
        if session.mode == "plan":
            self._end_call(call, "failed")
            await self.say("I am in plan mode, so I only say what I would do.")
            return False
        if not always_ask and (session.mode == "auto" or session.trusted):
            return True
        chosen = await self._connection.call(
            "session/request_permission", {"sessionId": session.id, "toolCall": call, "options": OPTIONS}
        )
        match chosen:
            case {"outcome": {"outcome": "selected", "optionId": "once" | "always" as option}}:
                session.trusted = session.trusted or option == "always"
                return True
            case {"outcome": {"outcome": "selected"}}:
                self._end_call(call, "failed")
                await self.say("All right, I leave it.")
                return False
            case _:
                raise asyncio.CancelledError

    def _remember(self, update: dict[str, Any]) -> None:
        """Add an update to the history of the conversation; it is stored later."""
        self._session.history.append(update)


def _entries(steps: list[str], done: int) -> list[dict[str, str]]:
    """Return the entries of a plan whose first `done` steps are done."""
    statuses = [
        "completed" if n < done else "in_progress" if n == done else "pending" for n in range(len(steps))
    ]
    return [
        {"content": step, "priority": "medium", "status": status}
        for step, status in zip(steps, statuses, strict=True)
    ]
