"""Send prompts to an agent, or cancel its turn, whether it speaks ACP or has only a terminal."""

import shlex
from collections.abc import Sequence

from msgspec import Struct

from ..domain.errors import Conflict, NotFound
from ..domain.prompts import Prompt
from ..domain.screen_patterns import TypingKeys
from ..domain.snapshot import Snapshot, Worker
from ..wire.keystrokes import TypingMode, image_reference
from . import acp_orders, pty_orders
from .conversation_change import ConversationChange
from .worker_services import AgentCatalog


class PromptInputs(Struct, frozen=True, kw_only=True):
    """What has to be read before the prompt is decided: images, files, a recap, or the mode of a terminal."""

    images: Sequence[tuple[str, str]] = ()  # media type and base64 of each
    files: Sequence[tuple[str, str]] = ()  # name and URI of each that the text mentions
    recap: str = ""
    typing: TypingMode | None = None  # for an agent in a terminal


def inputs_fit(worker: Worker, inputs: PromptInputs) -> bool:
    """Return whether the inputs are for this kind of agent: another agent may have become idle since."""
    return not worker.is_typed_to or inputs.typing is not None


def send_prompt(
    snapshot: Snapshot, worker_id: str, order: Prompt, inputs: PromptInputs, from_queue: bool = False
) -> ConversationChange:
    """Send a prompt and begin its turn, or raise Conflict if the agent is busy."""
    if not snapshot.worker(worker_id).is_typed_to:
        return acp_orders.send_prompt(
            snapshot, worker_id, order, inputs.images, inputs.files, inputs.recap, from_queue
        )
    if inputs.typing is None:
        raise Conflict("another agent is now in this role; send the prompt again")
    return pty_orders.send_prompt(snapshot, worker_id, order, inputs.typing, from_queue)


def cancel_turn(snapshot: Snapshot, worker_id: str, by: str, agents: AgentCatalog) -> ConversationChange:
    """Cancel what the agent does. The change is empty if the agent is idle."""
    worker = snapshot.worker(worker_id)
    if worker.is_typed_to:
        return pty_orders.cancel_turn(snapshot, worker_id, typing_keys(worker, agents))
    return acp_orders.cancel_turn(snapshot, worker_id, by)


def image_as_input(worker: Worker, path: str, bracketed: bool, agents: AgentCatalog) -> bytes:
    """Return the input that refers to an image file: the agent's syntax, or a quoted path for a shell."""
    keys = typing_keys(worker, agents) if worker.is_typed_to else TypingKeys()
    reference = image_reference(path, keys) if worker.is_typed_to else shlex.quote(path)
    return TypingMode(keys=keys, bracketed=bracketed).paste(f"{reference} ")


def typing_keys(worker: Worker, agents: AgentCatalog) -> TypingKeys:
    """Return the keys for an agent in a terminal; the default ones if its definition was removed."""
    try:
        return agents.get(worker.agent_id or "").keys
    except NotFound:
        return TypingKeys()
