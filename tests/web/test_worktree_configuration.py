"""The configuration of a repository runs no program when a client creates a worktree."""

from pathlib import Path

import pytest

from support.registered_repository import RegisteredRepository
from support.repositories import Repo
from support.server import Server


@pytest.fixture
async def repository(server: Server, workspace: Path) -> RegisteredRepository:
    return await RegisteredRepository.register(server, Repo(workspace / "repo"))


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "canary"


@pytest.mark.parametrize("condition", ["gitdir:**/worktrees/**", "onbranch:feat**"])
async def test_a_filter_that_is_included_only_in_a_new_worktree_does_not_run(
    repository: RegisteredRepository, tmp_path: Path, canary: Path, condition: str
) -> None:
    included = tmp_path / "included"
    included.write_text(f'[filter "x"]\n\tsmudge = "touch {canary}; cat"\n')
    repository.repo.write(".gitattributes", "* filter=x\n")
    repository.repo.commit("attributes")
    repository.repo.git("config", f"includeIf.{condition}.path", str(included))
    created = await repository.add(branch="feature")
    assert (Path(created["path"]) / "readme.txt").read_text() == "hello\n"
    assert not canary.exists()


async def test_a_missing_object_is_not_fetched_even_if_the_repository_allows_every_protocol(
    repository: RegisteredRepository, canary: Path
) -> None:
    repository.repo.write("missing.txt", "missing\n")
    repository.repo.commit("missing")
    name = repository.repo.git("rev-parse", "HEAD:missing.txt").strip()
    (repository.repo.git_dir / "objects" / name[:2] / name[2:]).unlink()
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "protocol.ext.allow": "always",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::sh -c touch% {canary}",
    }.items():
        repository.repo.git("config", key, value)
    refused = await repository.add(502, branch="feature")
    assert "missing.txt" in refused["message"]
    assert not canary.exists()
    assert len(await repository.list()) == 1
