"""The owner's token: in a file only the owner can read, and replaced by another when asked."""

import asyncio
import hmac
import os
from pathlib import Path

import structlog

from ..home import read_private, write_private
from ..store.answers import KeptAnswer
from ..store.keys import CredentialStore
from .derived_secrets import DerivedSecrets, SecretKind, fingerprint, new_seed

log = structlog.get_logger()


class OwnerToken:
    """A rotation is true when the database calls the old token retired.

    The new one lies beside the old until then; a rotation that a crash cuts short is finished or undone by
    `load`.
    """

    def __init__(self, home: Path, keys: CredentialStore, text: str) -> None:
        self._path = home / "token"
        self._next = home / "token.next"
        self._keys = keys
        self._hash = fingerprint(text)
        self._rotating = asyncio.Lock()

    @classmethod
    async def load(
        cls, home: Path, given: str | None, keys: CredentialStore, mint: DerivedSecrets
    ) -> "OwnerToken":
        """The given token, else the one in the file, else a new one; never one that was rotated away."""
        retired = await keys.retired()
        _settle(home, retired)
        path = home / "token"
        kept = read_private(path)
        if given and fingerprint(given) in retired:
            log.warning(
                "the token given at start was rotated away; the one in the file counts", file=str(path)
            )
            given = None
        if kept and fingerprint(kept) in retired:
            kept = None
        text = given or kept or mint.make(SecretKind.TOKEN, new_seed())
        if text != kept:
            write_private(path, text + "\n")
        return cls(home, keys, text)

    def matches(self, token_hash: str) -> bool:
        return hmac.compare_digest(token_hash, self._hash)

    async def rotate(self, text: str, answer: KeptAnswer[None] | None) -> None:
        """From now on the owner's token is `text`, and the old one is dead for good."""
        async with self._rotating:
            write_private(self._next, text + "\n")
            try:
                await self._keys.retire(self._hash, answer)
            except Exception:
                self._next.unlink()
                raise
            os.replace(self._next, self._path)
            self._hash = fingerprint(text)


def _settle(home: Path, retired: frozenset[str]) -> None:
    """Finishes or undoes a rotation that was cut short."""
    path, following = home / "token", home / "token.next"
    if read_private(following) is None:
        following.unlink(missing_ok=True)
    elif fingerprint(read_private(path) or "") in retired:
        os.replace(following, path)
    else:
        following.unlink()
