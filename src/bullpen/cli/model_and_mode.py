"""Set the model and the mode of an agent before it is prompted."""

from contextlib import aclosing
from typing import Any, NamedTuple

import click

from ..client import Client, Event, Worker
from ..domain.errors import RemoteFault

model_option = click.option("--model", help="The model, as the agent names it.")
mode_option = click.option("--mode", help="The mode, as the agent names it.")

_END_EVENTS = ("worker_failed", "worker_exited", "worker_terminated", "session_end")
_SETTING_METHODS = ("session/set_model", "session/set_mode", "session/set_config_option")


class ModelAndMode(NamedTuple):
    """The options --model and --mode; None keeps the agent's own choice."""

    model: str | None = None
    mode: str | None = None

    async def apply(self, client: Client, session_id: str, worker_id: str | None = None) -> None:
        """Set them at an agent, by default the first of the session; raise RemoteFault if it refuses.

        In a session without an agent, start the agent that its first prompt would start.
        """
        if self.model is None and self.mode is None:
            return
        worker = await _started_agent(client, session_id, worker_id)
        if self.model is not None:
            seq = await _head(client, session_id)
            await client.set_model(session_id, worker.id, self.model)
            await _wait_for_consent(client, worker, seq, "model", self.model)
        if self.mode is not None:
            seq = await _head(client, session_id)
            await client.set_mode(session_id, worker.id, self.mode)
            await _wait_for_consent(client, worker, seq, "mode", self.mode)


async def _started_agent(client: Client, session_id: str, worker_id: str | None) -> Worker:
    """Return the agent with an id, or the first of the session, once it has started.

    Start an agent if the session has none; raise RemoteFault if it does not start.
    """
    seq = await _head(client, session_id)
    workers = await client.workers(session_id)
    agents = (each for each in workers if each.type == "agent" and each.state != "terminated")
    named = (each for each in workers if each.id == worker_id)
    worker = next(named if worker_id else agents, None) or await client.add_worker(session_id, "agent")
    async with aclosing(client.follow(session_id, seq)) as events:
        while worker.state == "spawning":
            await anext(events)
            worker = await client.worker(session_id, worker.id)
    if worker.state == "failed":
        raise RemoteFault(worker.error or "the agent did not start")
    return worker


async def _head(client: Client, session_id: str) -> int:
    """Return the newest seq of a session."""
    return (await client.events(session_id, limit=1)).head


async def _wait_for_consent(client: Client, worker: Worker, seq: int, setting: str, value: str) -> None:
    """Wait until the agent, after event `seq`, accepts the model or mode; raise if it refuses."""
    async with aclosing(client.follow(worker.session_id, seq)) as events:
        async for event in events:
            if event.type in _END_EVENTS and event.worker_id in (worker.id, None):
                raise RemoteFault(f"the agent ended before it accepted the {setting} {value}")
            if not _is_answer(event, worker):
                continue
            match event.data:
                case {"error": {"message": str(reason)}}:
                    known = ", ".join(await _known_values(client, worker, setting))
                    hint = f"; it has {known}" if known else ""
                    raise RemoteFault(f"the agent refuses the {setting} {value}: {reason}{hint}")
            return


def _is_answer(event: Event, worker: Worker) -> bool:
    """Return whether an event is the agent's answer to a request that set its model or mode."""
    is_ours = event.type == "request_answered" and event.worker_id == worker.id
    return is_ours and isinstance(event.data, dict) and event.data.get("method") in _SETTING_METHODS


async def _known_values(client: Client, worker: Worker, setting: str) -> list[str]:
    """Return the models or modes that the agent listed when its session began."""
    page = await client.events(worker.session_id, types=["agent_session"])
    listings = [event.data for event in page.events if event.worker_id == worker.id]
    data: dict[str, Any] = listings[-1] if listings and isinstance(listings[-1], dict) else {}
    for option in data.get("configOptions") or []:
        match option:
            case {"category": str(category), "options": list(options)} if category == setting:
                return [str(each.get("value")) for each in options if isinstance(each, dict)]
    match data.get(f"{setting}s"):
        case {"availableModels": list(listed)} | {"availableModes": list(listed)}:
            key = "modelId" if setting == "model" else "id"
            return [str(each.get(key)) for each in listed if isinstance(each, dict)]
        case _:
            return []
