"""Tells a relay's client what happens in its session; that something ended, only when its process is gone."""

import asyncio
from collections.abc import AsyncIterator

from ...domain.events import Event, SessionEnd, WorkerTerminated
from ...log.follow import LogFollower
from ...sessions.session import Session
from ...wire import relay
from ...wire.browser import read_event
from ...wire.json import decode
from .admission import AdmittedSocket


class RelayNotices:
    """Follows one session to its end."""

    def __init__(self, session: Session, socket: AdmittedSocket) -> None:
        self._session = session
        self._socket = socket
        self._ended: list[int] = []  # when agents were terminated

    async def tell(self, follower: LogFollower) -> None:
        end: Event | None = None
        async with asyncio.TaskGroup() as endings:
            async for event in _events(follower):
                if isinstance(event.fact, SessionEnd):
                    end = event
                    break
                await self._tell(event, endings)
        if end is not None:  # else it was purged
            await self._session.wait_until_stopped()
            await self._send(end)

    async def _tell(self, event: Event, endings: asyncio.TaskGroup) -> None:
        if isinstance(event.fact, WorkerTerminated):
            endings.create_task(self._tell_gone(event))
        else:
            await self._send(event)

    async def _tell_gone(self, event: Event) -> None:
        """Beside the others, whom it must not keep waiting."""
        assert event.worker_id is not None
        if self._session.snapshot.worker(event.worker_id).type == "agent":
            self._ended.append(event.timestamp)
        await self._session.wait_until_stopped([event.worker_id])
        await self._send(event)

    async def _send(self, event: Event) -> None:
        # What ends with the session is stored in one piece with its end, and so at the same time.
        together = self._ended.count(event.timestamp)
        if notice := relay.notice_of(event, self._session.snapshot, together):
            await self._socket.send(notice)


async def _events(follower: LogFollower) -> AsyncIterator[Event]:
    async for batch in follower:
        for encoded in batch.encoded:
            yield read_event(decode(encoded))
