"""`bullpen chat`: talk to an agent in the terminal."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any

import click

from ..client import Client, Event, Permission, PermissionOption, Question
from ..domain.errors import BullpenError, Conflict
from ..domain.reasons import stop_reason_text
from .approve import describe
from .default_agent import expected_agent
from .find import SessionMatch, find, find_agent
from .form_filling import fill_in
from .report import describe_request, note_seen
from .stdin_lines import StdinLines
from .text import paint, printable, short
from .turn import FollowedTurn, fold
from .turn_output import TurnOutput
from .verb import target_argument, with_client


@click.command()
@target_argument
def chat(target: str) -> None:
    """Talk to an agent, and answer its permission requests and questions.

    An empty line or Ctrl-D leaves; the agent goes on. Ctrl-C cancels its turn.

    \b
    Examples:
      bullpen chat my-session
      bullpen chat my-session/reviewer
    """
    with_client(lambda client: _chat(client, target))


async def _chat(client: Client, target: str) -> None:
    """Send each line that the user types as a prompt, until an empty line.

    Raise Conflict if the session has ended.
    """
    found = await find(client, target)
    if not found.session.active:
        raise Conflict(f"{found.name} has ended; it takes no more prompts")
    lines = StdinLines()
    print(paint(f"talking to {found.name}; an empty line leaves", "grey"))
    if found.agent is None:
        agent = await expected_agent(client, found.session)
        print(paint(f"it has no agent yet; your first message starts {printable(agent)}", "grey"))
    with suppress(EOFError):
        while text := await lines.ask("> "):
            await ChatTurn(client, found, lines).run(text)


_ONCE, _NO = ("allow_once", "allow_always"), ("reject_once", "reject_always")
_KINDS = {  # what a short answer to a permission means, the preferred kind of option first
    "y": _ONCE,
    "yes": _ONCE,
    "once": ("allow_once",),
    "always": ("allow_always",),
    "n": _NO,
    "no": _NO,
}


class ChatTurn:
    """One prompt and the turn it starts: prints the agent's answer and asks the user what the agent asks."""

    def __init__(self, client: Client, found: SessionMatch, lines: StdinLines) -> None:
        self._client = client
        self._session_id = found.session.id
        self._worker_id = found.worker.id if found.worker else None
        self._lines = lines
        self._output = TurnOutput()
        self._cancelling: asyncio.Task[None] | None = None

    async def run(self, text: str) -> None:
        """Send the prompt and follow its turn until it ends."""
        prompted = await self._client.prompt(self._session_id, text, worker_id=self._worker_id)
        with self._cancel_on_interrupt():
            turn = FollowedTurn(prompt_id=prompted.prompt_id, worker_id=await self._agent_id())
            following = self._client.follow(self._session_id, prompted.seq - 1, looking=True)
            async with aclosing(following) as events:
                async for event in events:
                    turn = await self._handle(turn, event)
                    if turn.is_over:
                        await note_seen(self._client, self._session_id, event.seq)
                        break
        self._output.end_line()
        if turn.error:
            print(paint(printable(turn.error), "red"))
        elif turn.stop_reason != "end_turn":
            print(paint(f"the turn ended: {printable(stop_reason_text(turn.stop_reason))}", "amber"))

    async def _agent_id(self) -> str | None:
        """Return the id of the agent that got the prompt: the one named, or the first of the session."""
        agent = None if self._worker_id else await find_agent(self._client, self._session_id)
        return agent.id if agent else self._worker_id

    async def _handle(self, turn: FollowedTurn, event: Event) -> FollowedTurn:
        """Print an event of the turn, ask the user if the agent asks, and return the changed turn."""
        after = fold(turn, event)
        if after.begun and event.worker_id == after.worker_id:
            self._output.print_event(event)
        if after.asks is not None and after.asks is not turn.asks:
            await self._answer(after.asks)
        return after

    async def _answer(self, request: dict[str, Any]) -> None:
        """Ask the user, unless another client has answered already."""
        id = str(request.get("id"))
        permissions = {each.id: each for each in await self._client.permissions(self._session_id)}
        questions = {each.id: each for each in await self._client.questions(self._session_id)}
        self._output.end_line()
        try:
            if id in permissions:
                await self._choose(permissions[id])
            elif id in questions:
                await self._fill_in(questions[id])
            elif "id" not in request:
                print(paint(describe_request(request, short(self._session_id)), "amber"))
        except BullpenError as error:
            print(paint(str(error), "red"))

    async def _choose(self, permission: Permission) -> None:
        """Ask the user to choose an option of a permission request, and send the answer."""
        print(paint(describe(permission), "amber"))
        options = permission.options
        for number, option in enumerate(options, 1):
            print(f"  {number}. {printable(option.name)}")
        chosen = match_option(options, await self._lines.ask("? "))
        while chosen is None:
            chosen = match_option(
                options, await self._lines.ask(f"1 to {len(options)}, y, once, always or n? ")
            )
        await self._client.answer_permission(self._session_id, permission.id, chosen.option_id)

    async def _fill_in(self, question: Question) -> None:
        """Ask the user to fill in the form of a question, and send the answer."""
        content = await fill_in(question, {}, self._lines.ask)
        action = "decline" if content is None else "accept"
        await self._client.answer_question(self._session_id, question.id, action, content)

    @contextmanager
    def _cancel_on_interrupt(self) -> Iterator[None]:
        """Let Ctrl-C cancel the turn inside the `with` block."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._cancel)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    def _cancel(self) -> None:
        """Send the request that cancels the turn."""
        request = self._client.cancel_turn(self._session_id, self._worker_id)
        self._cancelling = asyncio.get_running_loop().create_task(request)


def match_option(options: list[PermissionOption], typed: str) -> PermissionOption | None:
    """Return the option that the user typed, or None.

    An option is typed as its number, its name, or a short form like y, always or n.
    """
    if typed.isdecimal() and 1 <= int(typed) <= len(options):
        return options[int(typed) - 1]
    text = typed.strip().casefold()
    names = ((each.option_id.casefold(), each.name.casefold()) for each in options)
    by_name = (each for each, own_names in zip(options, names, strict=True) if text in own_names)
    by_kind = (each for kind in _KINDS.get(text, ()) for each in options if each.kind == kind)
    return next(by_name, None) or next(by_kind, None)
