"""Register a git repository, which makes it a workspace root, and store its settings."""

from pathlib import Path

from msgspec.structs import replace

from .. import clock
from ..domain.commands import MAX_TITLE_LENGTH, check_text
from ..domain.ids import new_id
from ..domain.records import Repository, RepositorySettings
from ..git.git_directories import find_git_dir
from ..store.answers import PendingAnswer
from ..store.records import RecordStore
from ..workers.worker_services import WorkerServices
from .worktrees import RepositoryWorktrees


class RepositoryRegistration:
    """Stores repositories and their settings, one change at a time."""

    def __init__(
        self, records: RecordStore, services: WorkerServices, worktrees: RepositoryWorktrees
    ) -> None:
        self._records = records
        self._services = services
        self._worktrees = worktrees

    async def register(
        self,
        directory: Path,
        git_dir: Path,
        name: str | None = None,
        answer: PendingAnswer[Repository] | None = None,
    ) -> Repository:
        """Register a repository and the git directory that it has now; raise Conflict if it is registered."""
        now = clock.now_ms()
        name = check_text("name", name or directory.name, MAX_TITLE_LENGTH)
        repository = Repository(id=new_id(), path=str(directory), name=name, created_at=now, updated_at=now)
        async with self._worktrees.settings_lock:
            added = await self._records.add_repository(repository, answer)
            settings = replace(self._worktrees.settings(added.id), git_dir=str(git_dir))
            await self.store_settings(added.id, settings)
            await self._services.roots.reload_repositories()
        return added

    async def register_clone(self, directory: Path) -> Repository:
        """Register a repository that was just cloned."""
        return await self.register(directory, find_git_dir(directory))

    async def store_settings(self, repo_id: str, settings: RepositorySettings) -> None:
        """Store the settings of a repository, and use them. The caller holds the lock of the settings."""
        await self._records.set_repository_settings(repo_id, settings)
        self._services.repositories[repo_id] = settings
