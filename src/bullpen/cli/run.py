"""`bullpen run`: give a prompt to an agent in a new session."""

from pathlib import Path

import click

from ..client import Client, PromptResult, Session
from ..domain.errors import BullpenError, Invalid, RemoteFault
from ..domain.titles import short_title
from .find import find_agent
from .model_and_mode import ModelAndMode, mode_option, model_option
from .output import print_json
from .prompt_text import read_prompt
from .remedies import with_remedies
from .report import check_timeout, report_turn
from .session_place import base_option, branch_option, create_session, session_location, worktree_option
from .text import short
from .values import Number
from .verb import json_option, quiet_option, with_client


@click.command()
@click.argument("prompt", help="The prompt; - reads standard input.")
@click.option("--agent", help="The agent; see: bullpen agents ls")
@model_option
@mode_option
@click.option(
    "--directory", "-C", type=click.Path(path_type=Path), help="Its directory; by default this one."
)
@click.option("--name", "-n", help="The session's title; by default from the prompt.")
@worktree_option
@branch_option
@base_option
@click.option("--detach", "-d", is_flag=True, help="Return at once, which is the default.")
@click.option("--wait", is_flag=True, help="Wait for the end of the turn and print the answer.")
@click.option(
    "--timeout", type=Number(float, minimum=0), metavar="SECONDS", help="Stop waiting after this time."
)
@json_option
@quiet_option
def run(
    prompt: str,
    agent: str | None,
    model: str | None,
    mode: str | None,
    directory: Path | None,
    name: str | None,
    worktree: bool,
    branch: str | None,
    base: str | None,
    detach: bool,
    wait: bool,
    timeout: float | None,
    json: bool,
    quiet: bool,
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
    """Send the first prompt. If that fails, raise the reason; remove the session unless its agent failed."""
    try:
        await choice.apply(client, session.id)
        return await with_remedies(client, lambda: client.prompt(session.id, text))
    except BullpenError:
        now = await client.session(session.id)
        if now.status == "error" and now.workers:
            raise RemoteFault(now.workers[0].error or "the agent did not start") from None
        prompts = (await client.events(session.id, types=["user_prompt"], limit=1)).events
        await client.delete_session(session.id, purge=not prompts)  # keep no empty session
        raise
