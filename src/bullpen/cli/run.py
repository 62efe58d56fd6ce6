"""`bullpen run`: give a prompt to an agent in a new session."""

from pathlib import Path
from typing import Annotated

import typer

from ..client import Client, PromptResult, Session
from ..domain.errors import BullpenError, Invalid, RemoteFault
from ..domain.titles import short_title
from .find import find_agent
from .model_and_mode import Mode, Model, ModelAndMode
from .output import print_json
from .prompt_text import read_prompt
from .report import check_timeout, report_turn
from .session_place import Base, Branch, InWorktree, create_session, session_location
from .text import short
from .verb import AsJson, Quiet, new_app, with_client

app = new_app()


@app.command()
def run(
    prompt: Annotated[str, typer.Argument(help="The prompt; - reads standard input.")],
    agent: Annotated[str | None, typer.Option(help="The agent; see: bullpen agents ls")] = None,
    model: Model = None,
    mode: Mode = None,
    directory: Annotated[
        Path | None, typer.Option("--directory", "-C", help="Its directory; by default this one.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", "-n", help="The session's title; by default from the prompt.")
    ] = None,
    worktree: InWorktree = False,
    branch: Branch = None,
    base: Base = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return at once, which is the default.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the end of the turn and print the answer.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop waiting after this time.")
    ] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Give a prompt to an agent in a new session.

    With --wait, exits with 0 when the agent finished, 1 when it did not, 3 when it asks a person.

    \b
    Examples:
      bullpen run "fix the failing test"
      bullpen run "explain main.py" --agent demo --wait
      bullpen run "plan the move" --agent claude --model opus --mode plan
      bullpen run -w "add a dark mode"
      bullpen run - < task.md
      id=$(bullpen run -q "update the docs") && bullpen chat $id
    """
    if wait and detach:
        raise Invalid("--detach and --wait exclude each other; leave one out")
    check_timeout(wait, timeout)
    text = read_prompt(prompt)

    async def work(client: Client) -> int:
        location = await session_location(client, directory, worktree, branch, base, text)
        session = await create_session(client, **location, title=name or short_title(text), agent_id=agent)
        prompted = await _prompt(client, session, text, ModelAndMode(model, mode))
        if wait:
            worker = await find_agent(client, session.id)
            return await report_turn(client, session.id, worker, prompted, json, timeout)
        if json:
            print_json({"sessionId": session.id, "promptId": prompted.prompt_id})
        else:
            started = f"started {session.title}; follow with: bullpen chat {short(session.id)}"
            print(session.id if quiet else started)
        return 0

    return with_client(work)


async def _prompt(client: Client, session: Session, text: str, choice: ModelAndMode) -> PromptResult:
    """Send the first prompt; if that fails, remove the session and raise the reason."""
    try:
        await choice.apply(client, session.id)
        return await client.prompt(session.id, text)
    except BullpenError:
        now = await client.session(session.id)
        if now.status == "error" and now.workers:
            raise RemoteFault(now.workers[0].error or "the agent did not start") from None
        prompts = (await client.events(session.id, types=["user_prompt"], limit=1)).events
        await client.delete_session(session.id, purge=not prompts)  # keep no empty session
        raise
