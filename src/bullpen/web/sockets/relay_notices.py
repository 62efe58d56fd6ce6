"""Send the events of a session to a relay client as notices; ends are sent once the process has ended."""

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
    """Follows one session to its end, and sends its notices to one socket."""

    def __init__(self, session: Session, socket: AdmittedSocket) -> None:
        self._session = session
        self._socket = socket
        self._ended: list[int] = []  # timestamps at which agents were terminated

    async def send_all(self, follower: LogFollower) -> None:
        """Send the notices of all events; send the end of the session once its processes have ended."""
        end: Event | None = None
        async with asyncio.TaskGroup() as endings:
            async for event in _events(follower):
                if isinstance(event.fact, SessionEnd):
                    end = event
                    break
                await self._send_or_defer(event, endings)
        if end is not None:  # None after a purge
            await self._session.wait_until_stopped()
            await self._send(end)

    async def _send_or_defer(self, event: Event, endings: asyncio.TaskGroup) -> None:
        """Send the notice of an event, or start the task that sends it later."""
        if isinstance(event.fact, WorkerTerminated):
            endings.create_task(self._send_when_stopped(event))
        else:
            await self._send(event)

    async def _send_when_stopped(self, event: Event) -> None:
        """Send a terminated notice when the process has ended, without delaying other notices."""
        assert event.worker_id is not None
        if self._session.snapshot.worker(event.worker_id).type == "agent":
            self._ended.append(event.timestamp)
        await self._session.wait_until_stopped([event.worker_id])
        await self._send(event)

    async def _send(self, event: Event) -> None:
        # Agents that end with the session have the same timestamp, as they are stored in one transaction.
        """Send the notice of an event, if it has one."""
        ended_together = self._ended.count(event.timestamp)
        if notice := relay.notice_of(event, self._session.snapshot, ended_together):
            await self._socket.send(notice)


async def _events(follower: LogFollower) -> AsyncIterator[Event]:
    """Yield the events of a follower."""
    async for batch in follower:
        for encoded in batch.encoded:
            yield read_event(decode(encoded))
