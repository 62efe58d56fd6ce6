"""`bullpen search`: finds what was said, in any session."""

import sys
from typing import Annotated

import typer

from ..client import Client, SearchHit
from ..domain.errors import Forbidden
from .find import find_repository, find_session
from .output import print_json
from .table import TableColumn, print_table
from .text import age, short
from .time_argument import read_moment
from .values import nearest
from .verb import AsJson, new_app, with_client

app = new_app()

_COLUMNS = (
    TableColumn("SESSION", least=10),
    TableColumn("AT"),
    TableColumn("WHO"),
    TableColumn("AGE"),
    TableColumn("TEXT", least=20),
)


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(help="Words, all of which must be there.")],
    repo: Annotated[str | None, typer.Option(help="Only in sessions of a repository.")] = None,
    session: Annotated[str | None, typer.Option(help="Only in one session.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only what an agent said or did, by its id.")] = None,
    role: Annotated[str | None, typer.Option(help="user, agent, system, title or terminal.")] = None,
    kind: Annotated[
        str | None, typer.Option("--type", help="Only one type of event, like user_prompt or tool_call.")
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only later than a time, of this machine unless it names a zone."),
    ] = None,
    before: Annotated[str | None, typer.Option(metavar="TIME", help="Only earlier than a time.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 20,
    json: AsJson = False,
) -> None:
    """Find what was said, in any session; the newest first.

    \b
    Examples:
      bullpen search flaky test
      bullpen search migration --role user --after 2026-03-01
    """
    since = read_moment("--after", after) if after else None
    until = read_moment("--before", before) if before else None

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
            await _doubt(client, agent)
        return found

    found = with_client(work)
    if json:
        print_json({"results": found})
    elif found:
        print_table(_COLUMNS, [_row(each) for each in found])
    else:
        print("nothing found")


async def _doubt(client: Client, agent_id: str) -> None:
    """Says when no agent is called so; no error, for sessions remember agents that are defined no more."""
    try:
        known = [each.id for each in await client.agents()]
    except Forbidden:  # by a token that may not ask
        return
    if agent_id not in known:
        hint = nearest(agent_id, known) or "; see: bullpen agents ls"
        print(f"bullpen: no agent here is called {agent_id}{hint}", file=sys.stderr)


def _row(found: SearchHit) -> list[str]:
    place = f"{short(found.session_id)}:{found.seq}"
    return [found.session_title, place, found.role, age(found.timestamp), found.snippet]
