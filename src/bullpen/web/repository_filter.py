"""The query parameter that selects a repository: `repoId`, or its other name `repositoryId`."""

from typing import Annotated

from fastapi import Depends, Query


async def _repository_filter(
    repo_id: Annotated[str | None, Query(alias="repoId")] = None,
    repository_id: Annotated[
        str | None, Query(alias="repositoryId", description="another name of `repoId`")
    ] = None,
) -> str | None:
    """Return the id of the repository that the request filters by; None if it does not filter."""
    return repo_id or repository_id


RepositoryFilterDep = Annotated[str | None, Depends(_repository_filter)]
