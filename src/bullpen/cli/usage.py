"""`bullpen usage`: show the tokens and cost by day, turn, session, repository or agent."""

from datetime import datetime, timedelta
from typing import Literal, get_args

import click

from ..client import Client, UsageGroup, UsageReport, UsageTotals
from .find import find_repository, find_session
from .output import print_json
from .table import TableCell, TableColumn, print_table
from .text import short
from .time_argument import parse_time_option
from .values import Choice, Number
from .verb import json_option, with_client

By = Literal["day", "turn", "session", "repository", "agent"]

_NUMBERS = ("TURNS", "INPUT", "OUTPUT", "CACHED", "TOTAL", "COST")


@click.command()
@click.option("--by", type=Choice(get_args(By)), default="day", help="The unit of each line.")
@click.option("--days", type=Number(int, minimum=1), default=30, help="Only the last days.")
@click.option("--repo", help="Only sessions of this repository.")
@click.option("--session", help="Only this session.")
@click.option("--agent", help="Only this agent, by its id.")
@click.option(
    "--after",
    metavar="TIME",
    help="Only after this time, which is local unless it has a zone; replaces --days.",
)
@click.option("--before", metavar="TIME", help="Only before this time.")
@click.option("--limit", "-n", type=Number(int), default=100, help="The maximum number of lines.")
@json_option
def usage(
    by: By,
    days: int,
    repo: str | None,
    session: str | None,
    agent: str | None,
    after: str | None,
    before: str | None,
    limit: int,
    json: bool,
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
