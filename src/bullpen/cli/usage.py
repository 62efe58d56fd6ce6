"""`bullpen usage`: show the tokens and cost by day, turn, session, repository or agent."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

import typer

from ..client import Client, UsageGroup, UsageReport, UsageTotals
from .find import find_repository, find_session
from .output import print_json
from .table import TableCell, TableColumn, print_table
from .text import short
from .time_argument import parse_time_option
from .verb import AsJson, new_app, with_client

app = new_app()

By = Literal["day", "turn", "session", "repository", "agent"]

_NUMBERS = ("TURNS", "INPUT", "OUTPUT", "CACHED", "TOTAL", "COST")


@app.command()
def usage(
    by: Annotated[By, typer.Option(help="The unit of each line.")] = "day",
    days: Annotated[int, typer.Option(min=1, help="Only the last days.")] = 30,
    repo: Annotated[str | None, typer.Option(help="Only sessions of this repository.")] = None,
    session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent, by its id.")] = None,
    after: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Only after this time, which is local unless it has a zone; replaces --days.",
        ),
    ] = None,
    before: Annotated[str | None, typer.Option(metavar="TIME", help="Only before this time.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="The maximum number of lines.")] = 100,
    json: AsJson = False,
) -> None:
    """Show the tokens and cost that agents report.

    \b
    Examples:
      bullpen usage
      bullpen usage --by session --days 7
      bullpen usage --by turn --session my-session
    """
    now = datetime.now().astimezone()
    since = parse_time_option("--after", after) if after else (now - timedelta(days=days)).isoformat()
    until = parse_time_option("--before", before) if before else None

    async def work(client: Client) -> UsageReport:
        return await client.usage(
            by,
            repo_id=(await find_repository(client, repo)).id if repo else None,
            session_id=(await find_session(client, session)).id if session else None,
            agent_id=agent,
            after=since,
            before=until,
            utc_offset=round((now.utcoffset() or timedelta()).total_seconds() / 60),
            limit=limit,
        )

    report = with_client(work)
    if json:
        print_json(report)
    elif report.groups:
        columns = (TableColumn(by.upper(), least=10), *map(TableColumn, _NUMBERS))
        rows = [[_group_name(by, each), *_numbers(each)] for each in report.groups]
        print_table(columns, [*rows, [TableCell("all", "bold"), *_numbers(report.total)]])
    else:
        print("no agent has reported its usage")


def _group_name(by: By, group: UsageGroup) -> str:
    """Return the name of a group for the first column: its date, its turn with the session, or its title."""
    match by:
        case "day":
            return group.key or ""
        case "turn":
            return f"{short(group.session_id or '')}:{group.seq} {group.title}"
        case _:
            return group.title or "none"


def _numbers(used: UsageTotals) -> list[str]:
    """Return the cells of a line after the first."""
    cached = used.cached_read_tokens + used.cached_write_tokens
    tokens = (used.turns, used.input_tokens, used.output_tokens, cached, used.total_tokens)
    costs = ", ".join(f"{cost.amount:.2f} {cost.currency}" for cost in used.costs)
    return [*(f"{number:,}" if number else "-" for number in tokens), costs or "-"]
