"""Rules that users add and remove at the same time: each change takes effect and is stored."""

import asyncio

from bullpen.domain.errors import Conflict
from bullpen.domain.rules import Rule
from bullpen.sessions.rules import RuleSet
from support.server_without_web import ServerWithoutWeb


def read_rule(name: str) -> Rule:
    return Rule(name=name, agent_id="demo", kind="read", answer="allow")


async def rule_names(rules: RuleSet, local_server: ServerWithoutWeb) -> set[str]:
    """Return the names of the rules in force, after a check that the stored rules are the same."""
    stored = RuleSet(local_server.records, local_server.sessions)
    in_force = {rule.name for rule in rules.all}
    await stored.load()
    assert {rule.name for rule in stored.all} == in_force
    return in_force


async def test_rules_that_are_added_concurrently_are_all_in_force(local_server: ServerWithoutWeb) -> None:
    rules = RuleSet(local_server.records, local_server.sessions)
    await asyncio.gather(*(rules.add(read_rule(name)) for name in "abc"))
    assert await rule_names(rules, local_server) == {"a", "b", "c"}


async def test_a_removed_rule_is_not_restored_by_a_rule_that_is_added_concurrently(
    local_server: ServerWithoutWeb,
) -> None:
    rules = RuleSet(local_server.records, local_server.sessions)
    await rules.add(read_rule("old"))
    await asyncio.gather(rules.remove("old"), rules.add(read_rule("new")))
    assert await rule_names(rules, local_server) == {"new"}


async def test_one_of_two_rules_with_the_same_name_that_are_added_concurrently_is_refused(
    local_server: ServerWithoutWeb,
) -> None:
    rules = RuleSet(local_server.records, local_server.sessions)
    outcomes = await asyncio.gather(*(rules.add(read_rule("a")) for _ in range(2)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), Conflict]
    assert len(rules.all) == 1
