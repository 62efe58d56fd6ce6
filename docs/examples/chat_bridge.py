"""A bridge to a chat: follows every session and posts what a person wants to know to a webhook.

    python docs/examples/chat_bridge.py https://chat.example/hooks/abc

The webhook gets {"text": "..."}, as most chats take it. Restarts of the server are survived; no event is
posted twice.
"""

import asyncio
import sys
from contextlib import aclosing

import httpx

from bullpen.client import Client, Event, Session

LOOK_FOR_NEW = 1.0  # seconds


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


async def follow(client: Client, chat: httpx.AsyncClient, session: Session, after: int) -> None:
    """Tells the chat about one session until that ends."""
    async with aclosing(client.follow(session.id, after)) as events:
        async for event in events:
            if line := line_about(session, event):
                (await chat.post("", json={"text": line})).raise_for_status()
            if event.type == "session_end":
                return


async def bridge(webhook: str) -> None:
    known: set[str] = set()
    async with Client() as client, httpx.AsyncClient(base_url=webhook) as chat, asyncio.TaskGroup() as tasks:
        for session in await client.sessions(status=("active",)):  # their past is no news
            known.add(session.id)
            tasks.create_task(follow(client, chat, session, session.last_seq))
        print(f"following {len(known)} sessions and those to come", flush=True)
        while True:
            for session in await client.sessions():
                if session.id not in known:
                    known.add(session.id)
                    tasks.create_task(follow(client, chat, session, 0))
            await asyncio.sleep(LOOK_FOR_NEW)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: chat_bridge.py WEBHOOK")
    try:
        asyncio.run(bridge(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(0)
