"""Queue settings that a session inherits from its repository or from the server."""

from collections.abc import Iterable

from ..config import Config
from ..domain.queue import QueueSettings
from ..domain.records import Repository
from ..store.records import RecordStore
from .session import Session


def inheritable_queue_settings(config: Config, repository: Repository | None) -> QueueSettings:
    """Return the queue settings of the repository, with those of the server where it has none."""
    defaults = QueueSettings(
        enabled=config.queue_enabled,
        delay_seconds=config.queue_delay_seconds,
        max_size=config.queue_max_size,
        auto_generate_titles=config.queue_auto_generate_titles,
    )
    return defaults if repository is None else repository.queue.over(defaults)


async def inherited_queue_settings(session: Session, config: Config, records: RecordStore) -> QueueSettings:
    """Return the settings a session inherits, even if it has settings of its own now."""
    repo_id = session.snapshot.repo_id
    repository = await records.repository(repo_id, removed=True) if repo_id else None
    return inheritable_queue_settings(config, repository)


async def apply_inherited_settings(sessions: Iterable[Session], config: Config, records: RecordStore) -> None:
    """Store the inherited settings in each session that has no settings of its own."""
    for session in sessions:
        await session.inherit_queue_settings(await inherited_queue_settings(session, config, records))
