"""The rules that answer permission requests: those of the settings, and those that users added."""

import asyncio

import msgspec

from ..domain.errors import Conflict, NotFound
from ..domain.rules import Rule
from ..store.answers import PendingAnswer
from ..store.records import RecordStore
from .sessions import Sessions

SETTING_KEY = "rules"


class RuleSet:
    """Loads, adds and removes rules, and keeps all rules in force in `sessions.services.rules`."""

    def __init__(self, records: RecordStore, sessions: Sessions) -> None:
        self._records = records
        self._sessions = sessions
        self._added: tuple[Rule, ...] = ()
        self._changing = asyncio.Lock()  # a change reads the current rules and writes all of them

    async def load(self) -> None:
        """Read the added rules from the database, when the server starts."""
        stored = await self._records.setting(SETTING_KEY)
        self._apply(msgspec.convert(stored or [], tuple[Rule, ...]))

    @property
    def all(self) -> tuple[Rule, ...]:
        """Return all rules in force."""
        return self._sessions.services.rules

    def is_added(self, rule: Rule) -> bool:
        """Return whether a user added the rule; the other rules come from the settings."""
        return rule in self._added

    async def add(self, rule: Rule, answer: PendingAnswer[None] | None = None) -> None:
        """Add a rule, which also answers requests that are open now. Raise Conflict if its name is in use."""
        async with self._changing:
            if any(rule.name == each.name for each in self.all):
                raise Conflict(f"there is a rule {rule.name} already")
            await self._store((*self._added, rule), answer)
        self._sessions.reconcile_all()

    async def remove(self, name: str) -> None:
        """Remove an added rule. Raise Conflict if the settings define it, NotFound if there is none."""
        async with self._changing:
            kept = tuple(each for each in self._added if each.name != name)
            if len(kept) == len(self._added):
                if any(each.name == name for each in self.all):
                    raise Conflict(f"the rule {name} is in the settings; remove it there")
                raise NotFound(f"no rule {name}")
            await self._store(kept)

    async def _store(self, added: tuple[Rule, ...], answer: PendingAnswer[None] | None = None) -> None:
        """Store the added rules, and put them into force."""
        await self._records.set_setting(SETTING_KEY, added, answer)
        self._apply(added)

    def _apply(self, added: tuple[Rule, ...]) -> None:
        """Put the rules of the settings and the added rules into force."""
        self._added = added
        self._sessions.services.rules = (*self._sessions.services.config.rules, *added)
