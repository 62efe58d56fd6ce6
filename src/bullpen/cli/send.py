"""`bullpen send`: send a prompt to an agent of a session."""

import click
from msgspec import to_builtins

from ..client import Client, PromptSource
from .default_agent import receiving_agent
from .find import find
from .model_and_mode import ModelAndMode, mode_option, model_option
from .output import print_json
from .prompt_text import read_prompt
from .remedies import with_remedies
from .report import check_timeout, report_turn
from .values import Choice, Number
from .verb import json_option, target_argument, with_client


@click.command()
@target_argument
@click.argument("text", required=False, default="", help="The prompt; - reads standard input.")
@click.option("--from", "source", metavar="ROLE", help="Include the result of the agent in this role.")
@click.option(
    "--what", type=Choice(["answer", "diff"]), help="Of that agent: its last answer (default) or its changes."
)
@model_option
@mode_option
@click.option(
    "--busy",
    type=Choice(["queue", "reject", "interrupt"]),
    default="queue",
    help="What to do if it is in a turn.",
)
@click.option("--wait", is_flag=True, help="Wait for the end of the turn and print the answer.")
@click.option(
    "--timeout", type=Number(float, minimum=0), metavar="SECONDS", help="Stop waiting after this time."
)
@json_option
def send(
    target: str,
    text: str,
    source: str | None,
    what: str | None,
    model: str | None,
    mode: str | None,
    busy: str,
    wait: bool,
    timeout: float | None,
    json: bool,
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
        raise click.BadParameter("name the agent with --from ROLE", param_hint="--what")
    check_timeout(wait, timeout)
    prompt = read_prompt(text) if text or not source else ""

    async def work(client: Client) -> int:
        found = await find(client, target)
        worker_id = found.worker.id if found.worker else None
        from_role = PromptSource(role=source, what=what or "answer") if source else None
        await ModelAndMode(model, mode).apply(client, found.session.id, worker_id)
        prompted = await with_remedies(
            client,
            lambda: client.prompt(found.session.id, prompt, worker_id=worker_id, busy=busy, source=from_role),
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
