"""Clone a repository from a URL; git runs no program that a configuration or the repository names."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from ..domain.errors import Invalid, RemoteFault
from .command import GitAccess, start_git
from .marked import marker_variables
from .run import GitFailed

CLONE_SECONDS = 3600.0
MAX_URL_LENGTH = 2000

_URL = re.compile(r"(?:https?|ssh)://[^\s\x00-\x1f/-][^\s\x00-\x1f]*")
_SSH_SHORT = re.compile(r"[\w.-]+@[\w.-]+:(?!/?-)[^\s\x00-\x1f:]+")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
# Proxies, certificates and the agent of ssh, which the environment of the server names.
_NETWORK = ("HTTPS_PROXY", "https_proxy", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_INHERITED = (*_NETWORK, *_CERTIFICATES, "SSH_AUTH_SOCK")


def check_url(text: str) -> str:
    """Return the URL if git can clone it over HTTP or ssh, or raise Invalid."""
    url = text.strip()
    if len(url) > MAX_URL_LENGTH or not (_URL.fullmatch(url) or _SSH_SHORT.fullmatch(url)):
        raise Invalid(
            "a repository has an address such as https://example.org/project.git or git@host:project.git"
        )
    try:
        has_password = "://" in url and urlsplit(url).password is not None
    except ValueError:
        raise Invalid(f"{url} is not an address") from None
    if has_password:
        raise Invalid("leave the password out of the address: git would store it in the repository")
    return url


def directory_name(url: str) -> str:
    """Return the name of the directory into which git would clone a URL, or raise Invalid."""
    name = re.split(r"[/:]", url.rstrip("/"))[-1].removesuffix(".git")
    if not _NAME.fullmatch(name):
        raise Invalid(f"{url} does not end with the name of a repository")
    return name


async def clone_repository(url: str, target: Path, on_progress: Callable[[str], None], marker: str) -> None:
    """Clone a checked URL to an empty directory; raise RemoteFault if that fails.

    Git uses no hooks, no filters and no submodules, and never asks for a password. Cancelling ends git. Over
    HTTP, git runs in a sandbox; ssh needs the keys and the settings of the user.
    """
    environment = {name: value for name in _INHERITED if (value := os.environ.get(name))}
    certificates = [environment[name] for name in _CERTIFICATES if name in environment]
    access = GitAccess(read=("/etc/resolv.conf", *certificates), write=(str(target),), has_network=True)
    ended = await start_git(
        "clone",
        ["--progress", "--no-recurse-submodules", "--template=", "--", url, str(target)],
        {
            **environment,
            "GIT_ALLOW_PROTOCOL": "http:https:ssh",
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
            **marker_variables(marker),
        },
        access if url.startswith("http") else None,
        timeout=CLONE_SECONDS,
        on_progress=on_progress,
    )
    if ended.code:
        raise _explain_login(url, ended.errors) or GitFailed("clone", ended)


def _explain_login(url: str, errors: str) -> RemoteFault | None:
    """Return the error for a server that asks for a login or is unknown to ssh; None for other failures."""
    if "could not read Username" in errors or "Authentication failed" in errors:
        return RemoteFault(f"{url} needs a login; use its ssh address, or clone it in a terminal")
    if "Host key verification failed" in errors:
        return RemoteFault(f"ssh does not know the host of {url} yet; connect to it once in a terminal")
    if "Permission denied (" in errors:
        return RemoteFault(f"ssh could not log in to the host of {url}; check your ssh key in a terminal")
    return None
