"""Follow every session, and post the important events to the webhook of a chat.

    python docs/examples/chat_bridge.py https://chat.example/hooks/abc

The webhook gets {"text": "..."}, which most chats accept. The client connects again after a restart of the
server; no event is posted twice.
"""

import asyncio
import json
import sys
import urllib.request
from contextlib import aclosing

from bullpen.client import Client, Event, Session, SessionChanged, SessionList


def message_for(session: Session, event: Event) -> str | None:
    """Return the message for an event; None for most events, which are not posted."""
    match event.type, event.data:
        case "session_start", _:
            news = "has started"
        case "session_end", {"reason": reason}:
            news = f"has ended: {reason}"
        case "worker_exited", {"exitCode": code, "signal": signal}:
            news = f"ended with {signal or f'code {code}'}"
        case "worker_failed", {"error": error}:
            news = f"failed: {error}"
        case "permission", {"status": "pending"}:
            news = "needs your permission"
        case "turn_end", _:
            news = "is done with its turn"
        case _:
            return None
    return f"{session.title}/{event.role} {news}" if event.role else f"{session.title} {news}"


def post(webhook: str, message: str) -> None:
    """Post a message to the webhook."""
    body = json.dumps({"text": message}).encode()
    request = urllib.request.Request(webhook, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30):
        pass


async def follow(client: Client, webhook: str, session: Session, after: int) -> None:
    """Post the messages of one session until the session ends."""
    async with aclosing(client.follow(session.id, after)) as events:
        async for event in events:
            if message := message_for(session, event):
                await asyncio.to_thread(post, webhook, message)
            if event.type == "session_end":
                return


async def bridge(webhook: str) -> None:
    """Follow the sessions that exist and every new session, each in its own task."""
    past: dict[str, int] | None = None  # the last seq of each session at the start; later events are posted
    known: set[str] = set()
    async with Client() as client, asyncio.TaskGroup() as tasks, aclosing(client.dashboard()) as dashboard:
        async for news in dashboard:
            sessions = news.sessions if isinstance(news, SessionList) else []
            if isinstance(news, SessionChanged):
                sessions = [news.session]
            if past is None:
                past = {session.id: session.last_seq for session in sessions}
                known = {session.id for session in sessions if not session.active}
                print(f"following {len(past) - len(known)} sessions and those to come", flush=True)
            for session in sessions:
                if session.id not in known:
                    known.add(session.id)
                    tasks.create_task(follow(client, webhook, session, past.get(session.id, 0)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: chat_bridge.py WEBHOOK")
    try:
        asyncio.run(bridge(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(0)
