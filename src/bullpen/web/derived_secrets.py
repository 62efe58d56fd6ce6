"""How our secrets are made: known by how they begin, and made from a seed, so that none has to be stored.

A seed is harmless without the house's own secret. It is kept with the answer to a request, and when the
request comes again the same secret can be told again.
"""

import base64
import hashlib
import hmac
import secrets
from enum import StrEnum
from pathlib import Path

from ..home import read_private, write_private


class SecretKind(StrEnum):
    """What a secret opens, as its first letters; logs know them by these (`logs.py`)."""

    TOKEN = "bpt_"
    DEVICE = "bpd_"  # the cookie
    SECOND = "bps_"  # what only our own origin can read
    CODE = "bpc_"
    WORKER = "bpw_"


BYTES = {SecretKind.CODE: 16}  # short enough to be drawn as a picture in a terminal


def new_seed() -> str:
    return secrets.token_hex(16)


def fingerprint(secret: str) -> str:
    """What is stored in place of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


class DerivedSecrets:
    """Makes a secret from a seed: the same seed, the same secret."""

    def __init__(self, house_secret: str) -> None:
        self._house_secret = house_secret.encode()

    @classmethod
    def of_home(cls, home: Path) -> "DerivedSecrets":
        path = home / "secret"
        house_secret = read_private(path)
        if house_secret is None:
            house_secret = secrets.token_hex(32)
            write_private(path, house_secret + "\n")
        return cls(house_secret)

    def make(self, kind: SecretKind, seed: str) -> str:
        digest = hmac.digest(self._house_secret, f"{kind}{seed}".encode(), "sha256")
        return kind + base64.urlsafe_b64encode(digest[: BYTES.get(kind, 32)]).decode().rstrip("=")
