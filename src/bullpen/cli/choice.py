"""The model and the mode an agent shall work with, chosen before it is prompted."""

from contextlib import aclosing
from typing import Annotated, Any, NamedTuple

import typer

from ..client import Client, Event, Worker
from ..domain.errors import RemoteFault

Model = Annotated[str | None, typer.Option(help="The model it works with, by the agent's own name for it.")]
Mode = Annotated[str | None, typer.Option(help="The mode it works in, by the agent's own name for it.")]

_ENDED = ("worker_failed", "worker_exited", "worker_terminated", "session_end")
_SETTING = ("session/set_model", "session/set_mode", "session/set_config_option")


class ModelAndMode(NamedTuple):
    """What a person chose; what is left out stays as the agent has it."""

    model: str | None = None
    mode: str | None = None

    async def make(self, client: Client, session_id: str, worker_id: str | None = None) -> None:
        """Asks the agent for it, the first of the session unless one is meant; raises when it refuses.

        A session without an agent gets the one its prompt would get.
        """
        if self.model is None and self.mode is None:
            return
        worker = await _started(client, session_id, worker_id)
        if self.model is not None:
            seq = await _head(client, session_id)
            await client.set_model(session_id, worker.id, self.model)
            await _agreed(client, worker, seq, "model", self.model)
        if self.mode is not None:
            seq = await _head(client, session_id)
            await client.set_mode(session_id, worker.id, self.mode)
            await _agreed(client, worker, seq, "mode", self.mode)


async def _started(client: Client, session_id: str, worker_id: str | None) -> Worker:
    """The agent that is meant, once it has started."""
    seq = await _head(client, session_id)
    workers = await client.workers(session_id)
    agents = (each for each in workers if each.type == "agent" and each.state != "terminated")
    meant = (each for each in workers if each.id == worker_id)
    worker = next(meant if worker_id else agents, None) or await client.add_worker(session_id, "agent")
    async with aclosing(client.follow(session_id, seq)) as events:
        while worker.state == "spawning":
            await anext(events)
            worker = await client.worker(session_id, worker.id)
    if worker.state == "failed":
        raise RemoteFault(worker.error or "the agent did not start")
    return worker


async def _head(client: Client, session_id: str) -> int:
    return (await client.events(session_id, limit=1)).head


async def _agreed(client: Client, worker: Worker, seq: int, what: str, value: str) -> None:
    """Waits for the agent's answer to what it was asked for after an event."""
    async with aclosing(client.follow(worker.session_id, seq)) as events:
        async for event in events:
            if event.type in _ENDED and event.worker_id in (worker.id, None):
                raise RemoteFault(f"the agent ended before it had the {what} {value}")
            if not _is_answer(event, worker):
                continue
            match event.data:
                case {"error": {"message": str(why)}}:
                    known = ", ".join(await _known(client, worker, what))
                    raise RemoteFault(
                        f"the agent refuses the {what} {value}: {why}{f'; it has {known}' if known else ''}"
                    )
            return


def _is_answer(event: Event, worker: Worker) -> bool:
    ours = event.type == "request_answered" and event.worker_id == worker.id
    return ours and isinstance(event.data, dict) and event.data.get("method") in _SETTING


async def _known(client: Client, worker: Worker, what: str) -> list[str]:
    """What the agent said it has to choose from, when its session began."""
    page = await client.events(worker.session_id, types=["agent_session"])
    said = [event.data for event in page.events if event.worker_id == worker.id]
    data: dict[str, Any] = said[-1] if said and isinstance(said[-1], dict) else {}
    for option in data.get("configOptions") or []:
        match option:
            case {"category": str(category), "options": list(options)} if category == what:
                return [str(each.get("value")) for each in options if isinstance(each, dict)]
    match data.get(f"{what}s"):
        case {"availableModels": list(listed)} | {"availableModes": list(listed)}:
            key = "modelId" if what == "model" else "id"
            return [str(each.get(key)) for each in listed if isinstance(each, dict)]
        case _:
            return []
