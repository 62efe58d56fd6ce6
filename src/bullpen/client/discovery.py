"""Find the address and the token of the server, in the environment or in the files of a local server.

`server.json` remains when a server is killed. It is trusted only while a server holds the lock of the data
directory: otherwise another program may listen on that port or have that process id.
"""

import ipaddress
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from .. import config, home
from ..domain.errors import Invalid, Unauthorized
from .errors import ServerNotRunning

NOT_RUNNING = "Bullpen is not running here; start it with: bullpen serve"


class ServerAddress(NamedTuple):
    """The URL, token and certificate with which a client connects to a server."""

    url: str
    token: str
    certificate: Path | None = None  # trusted in addition to the system's authorities


class ServerDiscovery:
    """Reads the address of the server again for every connection, because a restart may change its port."""

    def __init__(self, directory: Path, env: Mapping[str, str], certificate: Path | None = None) -> None:
        self._directory = directory
        self._file = directory / home.ADDRESS
        self._token_file = directory / "token"
        self._certificate = certificate
        self._url = env.get("BULLPEN_URL", "").rstrip("/")
        self._token = env.get("BULLPEN_TOKEN", "")

    @classmethod
    def from_settings(cls, env: Mapping[str, str] | None = None) -> "ServerDiscovery":
        """Return the discovery of the server that the settings name."""
        env = os.environ if env is None else env
        settings = config.load(env=env)
        return cls(settings.home, env, settings.tls_certificate)

    @classmethod
    def at(cls, url: str, token: str) -> "ServerDiscovery":
        """Return the discovery of the server at a known URL."""
        return cls(Path(os.devnull), {"BULLPEN_URL": url, "BULLPEN_TOKEN": token})

    def find(self) -> ServerAddress:
        """Return the address; raise ServerNotRunning without a server, Unauthorized without a token."""
        url = self._url or self._read_address()[0]
        _check_url(url)
        return ServerAddress(url, self._token or self._read_token(url), self._certificate)

    def pid(self) -> int:
        """Return the process id of the server of this machine; raise ServerNotRunning without one."""
        return self._read_address()[1]

    def stamp(self) -> object:
        """Return a value that changes when a local server has started again."""
        if self._url:
            return None
        try:
            status = self._file.stat()
        except OSError:
            return None
        return (status.st_ino, status.st_mtime_ns)

    def not_running_error(self) -> ServerNotRunning:
        """Return the exception to raise when no server answers."""
        if self._url:
            return ServerNotRunning(f"nothing answers at {self._url}; is Bullpen running there?")
        return ServerNotRunning(NOT_RUNNING)

    def _read_address(self) -> tuple[str, int]:
        """Return the URL and the process id of the local server; raise ServerNotRunning if none runs."""
        try:
            address = json.loads(self._file.read_text())
            url, pid = str(address["url"]), int(address["pid"])
        except (OSError, ValueError, TypeError, KeyError):
            raise ServerNotRunning(NOT_RUNNING) from None
        if not home.is_held(self._directory):
            raise ServerNotRunning(NOT_RUNNING)
        return url.rstrip("/"), pid

    def _read_token(self, url: str) -> str:
        """Return the token of the local server, or raise Unauthorized; never send it to another machine."""
        if self._url and not _is_loopback(url):
            raise Unauthorized(f"set BULLPEN_TOKEN to a token of the server at {url}")
        try:
            token = self._token_file.read_text().strip()
        except OSError:
            token = ""
        if not token:
            raise Unauthorized(
                f"there is no token in {self._token_file}; set BULLPEN_TOKEN to a token of the server"
            )
        return token


def _check_url(url: str) -> None:
    """Raise Invalid unless BULLPEN_URL is an http or https URL."""
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise Invalid(f"BULLPEN_URL must look like http://127.0.0.1:7420, not {url}")


def _is_loopback(url: str) -> bool:
    """Return whether a URL names this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
