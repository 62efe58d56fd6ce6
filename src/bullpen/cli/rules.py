"""`bullpen rules`: list, add or remove rules that answer permissions automatically."""

import click

from ..client import Client, Rule
from .output import print_json
from .table import TableColumn, print_table
from .verb import json_option, with_client
from .verb_group import VerbGroup

rules = VerbGroup(help="Answer permissions automatically by exact rules; all others ask you.")

_COLUMNS = (
    TableColumn("NAME", least=8),
    TableColumn("ANSWER"),
    TableColumn("AGENT"),
    TableColumn("KIND"),
    TableColumn("ON", least=8),
    TableColumn("FROM"),
)


@rules.command()
@json_option
def ls(json: bool) -> None:
    """List the rules in the order in which they are tried."""
    rules = with_client(lambda client: client.rules())
    if json:
        print_json({"rules": rules})
    elif rules:
        print_table(_COLUMNS, [_row(rule) for rule in rules])
    else:
        print("no rules: every permission asks you")


@rules.command()
@click.argument("name", help="The name of the rule.")
@click.option("--agent", required=True, help="The id of the agent.")
@click.option("--kind", required=True, help="The kind of tool: read, edit, execute and so on.")
@click.option("--path", help="Only for exactly this path.")
@click.option("--command", help="Only for exactly this command line.")
@click.option("--reject", is_flag=True, help="Refuse instead of allowing.")
@json_option
def add(
    name: str, agent: str, kind: str, path: str | None, command: str | None, reject: bool, json: bool
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


@rules.command()
@click.argument("name", help="The name of the rule.")
def rm(name: str) -> None:
    """Remove a rule that was added."""
    with_client(lambda client: client.remove_rule(name))
    print("removed")


def _row(rule: Rule) -> list[str]:
    """Return the table row of a rule."""
    on = rule.path or rule.command or "any"
    return [rule.name, rule.answer, rule.agent_id, rule.kind, on, "added" if rule.added else "settings"]
