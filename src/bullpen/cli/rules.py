"""`bullpen rules`: list, add or remove rules that answer permissions automatically."""

from typing import Annotated

import typer

from ..client import Client, Rule
from .output import print_json
from .table import TableColumn, print_table
from .verb import AsJson, new_app, with_client

app = new_app("Answer permissions automatically by exact rules; all others ask you.")

_COLUMNS = (
    TableColumn("NAME", least=8),
    TableColumn("ANSWER"),
    TableColumn("AGENT"),
    TableColumn("KIND"),
    TableColumn("ON", least=8),
    TableColumn("FROM"),
)


@app.command()
def ls(json: AsJson = False) -> None:
    """List the rules in the order in which they are tried."""
    rules = with_client(lambda client: client.rules())
    if json:
        print_json({"rules": rules})
    elif rules:
        print_table(_COLUMNS, [_row(rule) for rule in rules])
    else:
        print("no rules: every permission asks you")


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="The name of the rule.")],
    agent: Annotated[str, typer.Option(help="The id of the agent.")],
    kind: Annotated[str, typer.Option(help="The kind of tool: read, edit, execute and so on.")],
    path: Annotated[str | None, typer.Option(help="Only for exactly this path.")] = None,
    command: Annotated[str | None, typer.Option(help="Only for exactly this command line.")] = None,
    reject: Annotated[bool, typer.Option(help="Refuse instead of allowing.")] = False,
    json: AsJson = False,
) -> None:
    """Add a rule, which applies at once.

    \b
    Examples:
      bullpen rules add reading --agent claude --kind read
      bullpen rules add tests --agent claude --kind execute --command "make test"
    """
    answer = "reject" if reject else "allow"

    async def work(client: Client) -> Rule:
        return await client.add_rule(name, agent, kind, answer, path=path, command=command)

    rule = with_client(work)
    if json:
        print_json(rule)
    else:
        print("added")


@app.command()
def rm(name: Annotated[str, typer.Argument(help="The name of the rule.")]) -> None:
    """Remove a rule that was added."""
    with_client(lambda client: client.remove_rule(name))
    print("removed")


def _row(rule: Rule) -> list[str]:
    """Return the table row of a rule."""
    on = rule.path or rule.command or "any"
    return [rule.name, rule.answer, rule.agent_id, rule.kind, on, "added" if rule.added else "settings"]
