"""Which option of a permission `bullpen approve` and `bullpen deny` choose."""

import pytest

from bullpen.cli.approve import choose
from bullpen.client.permission_shapes import PermissionOption
from bullpen.domain.errors import Conflict


def options(*kinds: str) -> list[PermissionOption]:
    return [PermissionOption(option_id=f"id of {kind}", name=kind, kind=kind) for kind in kinds]


def test_allowing_once_never_allows_always() -> None:
    with pytest.raises(Conflict, match=r"allow once; .* id of allow_always, id of"):
        choose(options("allow_always", "reject_once"), "allow_once", None)


def test_rejecting_once_rejects_always_if_nothing_else_is_offered() -> None:
    assert choose(options("allow_once", "reject_always"), "reject_once", None) == "id of reject_always"
    assert choose(options("reject_always", "reject_once"), "reject_once", None) == "id of reject_once"
