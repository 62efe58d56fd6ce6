"""What a person orders of an agent, whichever way one talks to it."""

import shlex
from collections.abc import Sequence

from msgspec import Struct

from ..domain.errors import Conflict, NotFound
from ..domain.prompts import Prompt
from ..domain.signs import TypingKeys
from ..domain.snapshot import Snapshot, Worker
from ..wire.keystrokes import TypingMode, spoken_of
from . import acp_orders, pty_orders
from .conversation_change import ConversationChange
from .worker_services import AgentCatalog


class PromptInputs(Struct, frozen=True, kw_only=True):
    """What was looked up for a prompt before it is decided on."""

    images: Sequence[tuple[str, str]] = ()  # each as its type and its base64
    recap: str = ""
    typing: TypingMode | None = None  # for an agent in a terminal


def is_prepared(worker: Worker, given: PromptInputs) -> bool:
    """Whether what was looked up is for such an agent: it may have become free only since."""
    return not worker.is_typed_to or given.typing is not None


def prompt(
    snapshot: Snapshot, worker_id: str, order: Prompt, given: PromptInputs, from_queue: bool = False
) -> ConversationChange:
    """The prompt and the turn it begins; the agent must be free."""
    if not snapshot.worker(worker_id).is_typed_to:
        return acp_orders.prompt(snapshot, worker_id, order, given.images, given.recap, from_queue)
    if given.typing is None:
        raise Conflict("another agent has taken the place of the one it was for; send it again")
    return pty_orders.prompt(snapshot, worker_id, order, given.typing, from_queue)


def cancel(snapshot: Snapshot, worker_id: str, by: str, agents: AgentCatalog) -> ConversationChange:
    """Stops what the agent does; nothing in it when it does nothing."""
    worker = snapshot.worker(worker_id)
    if worker.is_typed_to:
        return pty_orders.cancel(snapshot, worker_id, keys_of(worker, agents))
    return acp_orders.cancel(snapshot, worker_id, by)


def image_as_input(worker: Worker, path: str, bracketed: bool, agents: AgentCatalog) -> bytes:
    """What is typed to speak of an image in a file; a shell needs it quoted."""
    keys = keys_of(worker, agents) if worker.is_typed_to else TypingKeys()
    words = spoken_of(path, keys) if worker.is_typed_to else shlex.quote(path)
    return TypingMode(keys=keys, bracketed=bracketed).paste(f"{words} ")


def keys_of(worker: Worker, agents: AgentCatalog) -> TypingKeys:
    """How an agent is typed to; the usual way when its definition was removed."""
    try:
        return agents.get(worker.agent_id or "").keys
    except NotFound:
        return TypingKeys()
