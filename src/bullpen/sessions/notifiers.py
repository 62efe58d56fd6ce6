"""How a person is told: a request to a webhook, a command of the desktop."""

import asyncio
import os
import subprocess
import urllib.request
from contextlib import suppress
from typing import Any, Protocol

from ..config import Config
from ..domain.inbox import InboxItem
from ..wire.browser import iso
from ..wire.json import encode

PATIENCE = 10.0  # seconds
LONGEST = 300  # letters of a text
WORDS = {
    "permission": "asks for permission",
    "question": "has a question",
    "asking": "waits for input",
    "failed": "failed",
    "finished": "is done",
}


class Notifier(Protocol):
    """One way to tell somebody."""

    name: str

    async def tell(self, item: InboxItem) -> None: ...


def messengers(config: Config) -> list[Notifier]:
    """The ways the settings name."""
    found: list[Notifier] = []
    if config.notify_webhook:
        found.append(WebhookNotifier(config.notify_webhook))
    if config.notify_command:
        found.append(CommandNotifier(config.notify_command))
    return found


def notice(item: InboxItem) -> dict[str, Any]:
    """What is told; enough to find the place, nothing of what a tool call carries."""
    return {
        "id": item.id,
        "kind": item.kind,
        "sessionId": item.session_id,
        "sessionTitle": item.session_title,
        "workerId": item.worker_id,
        "role": item.role,
        "title": f"{item.role} {WORDS[item.kind]}",
        "text": f"{item.session_title}: {item.text}"[:LONGEST],
        "createdAt": iso(item.since),
    }


class WebhookNotifier:
    """A POST of JSON; an answer that sends us elsewhere is not followed."""

    name = "webhook"

    def __init__(self, url: str) -> None:
        self._url = url
        self._opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))

    async def tell(self, item: InboxItem) -> None:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url, encode(notice(item)), headers, method="POST")
        await asyncio.to_thread(self._post, request)

    def _post(self, request: urllib.request.Request) -> None:
        with self._opener.open(request, timeout=PATIENCE):
            pass


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class CommandNotifier:
    """A program with a title and a text as its last arguments, such as `notify-send`."""

    name = "command"

    def __init__(self, argv: tuple[str, ...]) -> None:
        self._argv = argv

    async def tell(self, item: InboxItem) -> None:
        said = notice(item)
        # A name may begin with a dash; no program shall take it for an option.
        texts = [f"Bullpen: {said['title']}", f"“{said['text']}”"]
        process = await asyncio.create_subprocess_exec(
            *self._argv,
            *(text.replace("\0", "") for text in texts),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if not name.startswith("BULLPEN_")},
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(PATIENCE):
                code = await process.wait()
        except BaseException:
            with suppress(ProcessLookupError):
                process.kill()
            raise
        if code:
            raise OSError(f"{self._argv[0]} ended with code {code}")
