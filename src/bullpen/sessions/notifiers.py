"""Send a notification about an inbox item to a webhook or a desktop command; the caller handles failures."""

import asyncio
import os
import subprocess
import urllib.request
from contextlib import suppress
from typing import Any, Protocol

from ..config import Config
from ..domain.inbox import InboxItem
from ..wire.browser import iso_time
from ..wire.json import encode

TIMEOUT_SECONDS = 10.0
MAX_TEXT_CHARACTERS = 300
KIND_TEXTS = {
    "permission": "asks for permission",
    "question": "has a question",
    "asking": "waits for input",
    "refused": "was refused something by the sandbox",
    "failed": "failed",
    "finished": "is done",
}


class Notifier(Protocol):
    """A way to notify the user."""

    name: str

    async def send(self, item: InboxItem) -> None:
        """Notify the user of an inbox item, or raise OSError, HTTPException or ValueError."""


def create_notifiers(config: Config) -> list[Notifier]:
    """Return a notifier for each webhook and command in the settings."""
    found: list[Notifier] = []
    if config.notify_webhook:
        found.append(WebhookNotifier(config.notify_webhook))
    if config.notify_command:
        found.append(CommandNotifier(config.notify_command))
    return found


def notification_content(item: InboxItem) -> dict[str, Any]:
    """Return the content of a notification: enough to find the session, without arguments of a tool call."""
    return {
        "id": item.id,
        "kind": item.kind,
        "sessionId": item.session_id,
        "sessionTitle": item.session_title,
        "workerId": item.worker_id,
        "role": item.role,
        "title": f"{item.role} {KIND_TEXTS[item.kind]}",
        "text": f"{item.session_title}: {item.text}"[:MAX_TEXT_CHARACTERS],
        "createdAt": iso_time(item.since),
    }


class WebhookNotifier:
    """Sends notifications as JSON by POST to a URL. Redirects are not followed."""

    name = "webhook"

    def __init__(self, url: str) -> None:
        self._url = url
        self._opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))

    async def send(self, item: InboxItem) -> None:
        """Post an item to the URL. Raise OSError if it cannot be delivered."""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(
            self._url, encode(notification_content(item)), headers, method="POST"
        )
        await asyncio.to_thread(self._post, request)

    def _post(self, request: urllib.request.Request) -> None:
        """Send a request and ignore the body of the answer; blocks, so it runs in a thread."""
        with self._opener.open(request, timeout=TIMEOUT_SECONDS):
            pass


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A handler of urllib that follows no redirect."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return None, so that urllib reports the redirect as an error."""


class CommandNotifier:
    """Runs a program such as `notify-send`, with the title and the text as its last arguments."""

    name = "command"

    def __init__(self, argv: tuple[str, ...]) -> None:
        self._argv = argv

    async def send(self, item: InboxItem) -> None:
        """Run the command for an item. Raise OSError if it fails, TimeoutError if it takes too long."""
        content = notification_content(item)
        # The fixed prefixes keep a text that begins with a dash from being read as an option.
        texts = [f"Bullpen: {content['title']}", f"“{content['text']}”"]
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
            async with asyncio.timeout(TIMEOUT_SECONDS):
                code = await process.wait()
        except BaseException:
            with suppress(ProcessLookupError):
                process.kill()
            raise
        if code:
            raise OSError(f"{self._argv[0]} ended with code {code}")
