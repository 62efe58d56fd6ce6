"""The owner's token: stored in a file that only the owner can read, and replaced on request (rotation)."""

import asyncio
import hmac
import os
from pathlib import Path

import structlog

from ..home import read_private, write_private
from ..store.answers import PendingAnswer
from ..store.credentials import CredentialStore
from .derived_secrets import DerivedSecrets, SecretKind, fingerprint, new_seed

log = structlog.get_logger()


class OwnerToken:
    """Checks and rotates the owner's token.

    A rotation takes effect when the database lists the old token as retired. Until then, the new token is
    in a second file. After a crash, `load` finishes or undoes the rotation.
    """

    def __init__(self, home: Path, keys: CredentialStore, text: str) -> None:
        self._path = home / "token"
        self._next = home / "token.next"
        self._keys = keys
        self._hash = fingerprint(text)
        self._rotation_lock = asyncio.Lock()

    @classmethod
    async def load(
        cls, home: Path, given: str | None, keys: CredentialStore, secrets: DerivedSecrets
    ) -> "OwnerToken":
        """Return the given token, else the one in the file, else a new one; never a retired one."""
        retired = await keys.retired()
        _recover_rotation(home, retired)
        path = home / "token"
        stored = read_private(path)
        if given and fingerprint(given) in retired:
            log.warning(
                "the token of the settings was retired by a rotation; the token in the file is used",
                file=str(path),
            )
            given = None
        if stored and fingerprint(stored) in retired:
            stored = None
        text = given or stored or secrets.make(SecretKind.TOKEN, new_seed())
        if text != stored:
            write_private(path, text + "\n")
        return cls(home, keys, text)

    def matches(self, token_hash: str) -> bool:
        """Return whether this is the hash of the owner's token."""
        return hmac.compare_digest(token_hash, self._hash)

    async def rotate(self, text: str, answer: PendingAnswer[None] | None) -> None:
        """Make `text` the owner's token, and retire the old one for good."""
        async with self._rotation_lock:
            write_private(self._next, text + "\n")
            try:
                await self._keys.retire(self._hash, answer)
            except Exception:
                self._next.unlink()
                raise
            os.replace(self._next, self._path)
            self._hash = fingerprint(text)


def _recover_rotation(home: Path, retired: frozenset[str]) -> None:
    """Finish or undo a rotation that a crash has interrupted."""
    path, following = home / "token", home / "token.next"
    if read_private(following) is None:
        following.unlink(missing_ok=True)
    elif fingerprint(read_private(path) or "") in retired:
        os.replace(following, path)
    else:
        following.unlink()
