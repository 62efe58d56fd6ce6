"""How the queue of a session works when nobody said so there: as its repository or the house wants (R54)."""

from collections.abc import Iterable

from ..config import Config
from ..domain.queue import QueueSettings
from ..domain.records import Repository
from ..store.records import RecordStore
from .session import Session


def queue_settings(config: Config, repository: Repository | None) -> QueueSettings:
    house = QueueSettings(
        enabled=config.queue_enabled,
        delay_seconds=config.queue_delay_seconds,
        max_size=config.queue_max_size,
        auto_generate_titles=config.queue_auto_generate_titles,
    )
    return house if repository is None else repository.queue.over(house)


async def inherited(session: Session, config: Config, records: RecordStore) -> QueueSettings:
    """What the session has, or would have without settings of its own."""
    repo_id = session.snapshot.repo_id
    repository = await records.repository(repo_id, removed=True) if repo_id else None
    return queue_settings(config, repository)


async def hand_down(sessions: Iterable[Session], config: Config, records: RecordStore) -> None:
    """Gives each session what it inherits now; one with settings of its own keeps them."""
    for session in sessions:
        await session.inherit_queue_settings(await inherited(session, config, records))
