"""Derive tokens, codes and device secrets from a seed and the server's secret.

So they need not be stored. A seed is useless without the server's secret. It is stored with the answer to a
request, so that a repeated request gets the same secret again.
"""

import base64
import hashlib
import hmac
import secrets
from enum import StrEnum
from pathlib import Path

from ..home import read_private, write_private


class SecretKind(StrEnum):
    """The kinds of secrets, by their prefix. `logs.py` recognises them by it and covers them."""

    TOKEN = "bpt_"
    DEVICE = "bpd_"  # the cookie
    SECOND = "bps_"  # the second secret of a device, which only pages of this origin can read
    CODE = "bpc_"
    WORKER = "bpw_"


SIZES = {SecretKind.CODE: 16}  # bytes; short enough for a QR code in a terminal


def new_seed() -> str:
    """Return a new random seed."""
    return secrets.token_hex(16)


def fingerprint(secret: str) -> str:
    """Return the hash that is stored in place of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


class DerivedSecrets:
    """Derives secrets from seeds; the same kind and seed give the same secret."""

    def __init__(self, server_secret: str) -> None:
        self._server_secret = server_secret.encode()

    @classmethod
    def of_home(cls, home: Path) -> "DerivedSecrets":
        """Return the instance of a data directory; create the server's secret if there is none."""
        path = home / "secret"
        server_secret = read_private(path)
        if server_secret is None:
            server_secret = secrets.token_hex(32)
            write_private(path, server_secret + "\n")
        return cls(server_secret)

    def make(self, kind: SecretKind, seed: str) -> str:
        """Return the secret of this kind for a seed."""
        digest = hmac.digest(self._server_secret, f"{kind}{seed}".encode(), "sha256")
        return kind + base64.urlsafe_b64encode(digest[: SIZES.get(kind, 32)]).decode().rstrip("=")
