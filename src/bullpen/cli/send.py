"""`bullpen send`: send a prompt to an agent of a session."""

from enum import StrEnum
from typing import Annotated

import typer
from msgspec import to_builtins

from ..client import Client
from .default_agent import receiving_agent
from .find import find
from .model_and_mode import Mode, Model, ModelAndMode
from .output import print_json
from .prompt_text import read_prompt
from .report import check_timeout, report_turn
from .verb import AsJson, Target, new_app, with_client

app = new_app()


class BusyPolicy(StrEnum):
    """What happens to a prompt while the agent is in a turn."""

    QUEUE = "queue"
    REJECT = "reject"
    INTERRUPT = "interrupt"


class ForwardedContent(StrEnum):
    """What of another agent the prompt includes."""

    ANSWER = "answer"
    DIFF = "diff"


@app.command()
def send(
    target: Target,
    text: Annotated[str, typer.Argument(help="The prompt; - reads standard input.")] = "",
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="ROLE", help="Include the result of the agent in this role."),
    ] = None,
    what: Annotated[
        ForwardedContent | None,
        typer.Option(help="Of that agent: its last answer (default) or its changes."),
    ] = None,
    model: Model = None,
    mode: Mode = None,
    busy: Annotated[BusyPolicy, typer.Option(help="What to do if it is in a turn.")] = BusyPolicy.QUEUE,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the end of the turn and print the answer.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop waiting after this time.")
    ] = None,
    json: AsJson = False,
) -> int:
    """Send a prompt to an agent.

    \b
    Examples:
      bullpen send my-session "now the tests"
      make test 2>&1 | bullpen send my-session -
      bullpen send my-session/reviewer "what do you think?" --wait
      bullpen send my-session/reviewer "is this right?" --from coder
      bullpen send my-session/reviewer "please review" --from coder --what diff
    """
    if what and not source:
        raise typer.BadParameter("name the agent with --from ROLE", param_hint="--what")
    check_timeout(wait, timeout)
    prompt = read_prompt(text) if text or not source else ""

    async def work(client: Client) -> int:
        found = await find(client, target)
        worker_id = found.worker.id if found.worker else None
        from_role = {"role": source, "what": what or ForwardedContent.ANSWER} if source else None
        await ModelAndMode(model, mode).apply(client, found.session.id, worker_id)
        prompted = await client.prompt(
            found.session.id, prompt, worker_id=worker_id, busy=busy, source=from_role
        )
        agent = await receiving_agent(client, found)
        if wait:
            return await report_turn(client, found.session.id, agent, prompted, json, timeout)
        if json:
            receiver = {"workerId": agent.id, "agentId": agent.agent_id} if agent else {}
            print_json(to_builtins(prompted) | receiver)
        else:
            print(f"{'queued for' if prompted.queued else 'sent to'} {found.name}")
        return 0

    return with_client(work)
