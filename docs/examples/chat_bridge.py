"""A bridge to a chat: follows every session and posts what a person wants to know to a webhook.

    python docs/examples/chat_bridge.py https://chat.example/hooks/abc

The webhook gets {"text": "..."}, as most chats take it. Restarts of the server are survived; no event is
posted twice.
"""

import asyncio
import json
import sys
import urllib.request
from contextlib import aclosing

from bullpen.client import Client, Event, Session, SessionChanged, SessionList


def line_about(session: Session, event: Event) -> str | None:
    """What to say about an event; most need no words."""
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


def post(webhook: str, line: str) -> None:
    body = json.dumps({"text": line}).encode()
    request = urllib.request.Request(webhook, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30):
        pass


async def follow(client: Client, webhook: str, session: Session, after: int) -> None:
    """Tells the chat about one session until that ends."""
    async with aclosing(client.follow(session.id, after)) as events:
        async for event in events:
            if line := line_about(session, event):
                await asyncio.to_thread(post, webhook, line)
            if event.type == "session_end":
                return


async def bridge(webhook: str) -> None:
    past: dict[str, int] | None = None  # how far each session was when we came: that is no news
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
