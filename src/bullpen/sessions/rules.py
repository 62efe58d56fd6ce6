"""The rules of the house: those of its settings, and those people added while it ran."""

import asyncio

import msgspec

from ..domain.errors import Conflict, NotFound
from ..domain.rules import Rule
from ..store.answers import KeptAnswer
from ..store.records import RecordStore
from .sessions import Sessions

KEY = "rules"


class RuleSet:
    """`sessions.workshop.rules` are those in force, a setting's before an added one."""

    def __init__(self, records: RecordStore, sessions: Sessions) -> None:
        self._records = records
        self._sessions = sessions
        self._added: tuple[Rule, ...] = ()
        self._changing = asyncio.Lock()  # every change is made from what the last one left

    async def load(self) -> None:
        stored = await self._records.setting(KEY)
        self._use(msgspec.convert(stored or [], tuple[Rule, ...]))

    @property
    def all(self) -> tuple[Rule, ...]:
        return self._sessions.workshop.rules

    def is_added(self, rule: Rule) -> bool:
        return rule in self._added

    async def add(self, rule: Rule, answer: KeptAnswer[None] | None = None) -> None:
        """In force at once, for what is asked already too."""
        async with self._changing:
            if any(rule.name == each.name for each in self.all):
                raise Conflict(f"there is a rule {rule.name} already")
            await self._keep((*self._added, rule), answer)
        self._sessions.follow_all()

    async def remove(self, name: str) -> None:
        async with self._changing:
            kept = tuple(each for each in self._added if each.name != name)
            if len(kept) == len(self._added):
                if any(each.name == name for each in self.all):
                    raise Conflict(f"the rule {name} is in the settings; remove it there")
                raise NotFound(f"no rule {name}")
            await self._keep(kept)

    async def _keep(self, added: tuple[Rule, ...], answer: KeptAnswer[None] | None = None) -> None:
        await self._records.set_setting(KEY, added, answer)
        self._use(added)

    def _use(self, added: tuple[Rule, ...]) -> None:
        self._added = added
        self._sessions.workshop.rules = (*self._sessions.workshop.config.rules, *added)
