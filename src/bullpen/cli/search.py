"""`bullpen search`: search the messages and terminal output of all sessions."""

import sys

import click

from ..client import Client, SearchHit
from ..domain.errors import Forbidden
from .find import find_repository, find_session
from .output import print_json
from .table import TableColumn, print_table
from .text import age, short
from .time_argument import parse_time_option
from .values import Number, suggestion
from .verb import json_option, with_client

_COLUMNS = (
    TableColumn("SESSION", least=10),
    TableColumn("AT"),
    TableColumn("WHO"),
    TableColumn("AGE"),
    TableColumn("TEXT", least=20),
)


@click.command()
@click.argument("words", nargs=-1, required=True, help="Words that must all occur.")
@click.option("--repo", help="Only in sessions of this repository.")
@click.option("--session", help="Only in this session.")
@click.option("--agent", help="Only messages and actions of this agent, by its id.")
@click.option("--role", help="user, agent, system, title or terminal.")
@click.option("--type", "kind", help="Only events of this type, such as user_prompt or tool_call.")
@click.option("--after", metavar="TIME", help="Only after this time, which is local unless it has a zone.")
@click.option("--before", metavar="TIME", help="Only before this time.")
@click.option("--limit", "-n", type=Number(int, minimum=1), default=20, help="The maximum number of results.")
@json_option
def search(
    words: tuple[str, ...],
    repo: str | None,
    session: str | None,
    agent: str | None,
    role: str | None,
    kind: str | None,
    after: str | None,
    before: str | None,
    limit: int,
    json: bool,
) -> None:
    """Search the messages and terminal output of all sessions; the newest results come first.

    \b
    Examples:
      bullpen search flaky test
      bullpen search migration --role user --after 2026-03-01
    """
    since = parse_time_option("--after", after) if after else None
    until = parse_time_option("--before", before) if before else None

    async def work(client: Client) -> list[SearchHit]:
        found = await client.search(
            " ".join(words),
            repo_id=(await find_repository(client, repo)).id if repo else None,
            session_id=(await find_session(client, session)).id if session else None,
            agent_id=agent,
            role=role,
            type=kind,
            after=since,
            before=until,
            limit=limit,
        )
        if agent and not found:
            await _warn_unknown_agent(client, agent)
        return found

    found = with_client(work)
    if json:
        print_json({"results": found})
    elif found:
        print_table(_COLUMNS, [_row(each) for each in found])
    else:
        print("nothing found")


async def _warn_unknown_agent(client: Client, agent_id: str) -> None:
    """Warn if no agent has this id. This is no error: old sessions may name agents that were removed."""
    try:
        known = [each.id for each in await client.agents()]
    except Forbidden:  # the token may not list agents
        return
    if agent_id not in known:
        hint = suggestion(agent_id, known) or "; see: bullpen agents ls"
        print(f"bullpen: no agent here is called {agent_id}{hint}", file=sys.stderr)


def _row(found: SearchHit) -> list[str]:
    """Return the table row of a search result."""
    position = f"{short(found.session_id)}:{found.seq}"
    return [found.session_title, position, found.role, age(found.timestamp), found.snippet]
