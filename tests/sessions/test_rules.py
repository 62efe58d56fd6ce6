"""Rules people add and remove at the same time: each change stands, now and after a restart."""

import asyncio

from bullpen.domain.errors import Conflict
from bullpen.domain.rules import Rule
from bullpen.sessions.rules import RuleSet
from support.server_without_web import ServerWithoutWeb


def reading(name: str) -> Rule:
    return Rule(name=name, agent_id="demo", kind="read", answer="allow")


async def names(rules: RuleSet, house: ServerWithoutWeb) -> set[str]:
    """Of the rules in force, which are those the next server finds."""
    later = RuleSet(house.records, house.sessions)
    in_force = {rule.name for rule in rules.all}
    await later.load()
    assert {rule.name for rule in later.all} == in_force
    return in_force


async def test_rules_that_are_added_at_once_are_all_in_force(house: ServerWithoutWeb) -> None:
    rules = RuleSet(house.records, house.sessions)
    await asyncio.gather(*(rules.add(reading(name)) for name in "abc"))
    assert await names(rules, house) == {"a", "b", "c"}


async def test_a_removed_rule_is_not_brought_back_by_one_that_is_added_meanwhile(
    house: ServerWithoutWeb,
) -> None:
    rules = RuleSet(house.records, house.sessions)
    await rules.add(reading("old"))
    await asyncio.gather(rules.remove("old"), rules.add(reading("new")))
    assert await names(rules, house) == {"new"}


async def test_of_two_rules_of_one_name_that_come_at_once_one_is_refused(house: ServerWithoutWeb) -> None:
    rules = RuleSet(house.records, house.sessions)
    outcomes = await asyncio.gather(*(rules.add(reading("a")) for _ in range(2)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), Conflict]
    assert len(rules.all) == 1
