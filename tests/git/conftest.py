"""Fixtures of the tests of git."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.git_sandbox import confined_git


@pytest.fixture
def confined(tmp_path: Path) -> Iterator[None]:
    """Run git in the sandbox that a server gives it; all that a test makes is in the home of the user."""
    with confined_git(tmp_path, tmp_path):
        yield
