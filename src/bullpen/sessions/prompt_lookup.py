"""Read what a prompt needs before it is sent: images, files, forwarded text, a recap, the terminal mode."""

import asyncio
import base64
from collections.abc import Iterable
from pathlib import Path

from ..domain import prompts
from ..domain.conversation import AgentMessage, ForwardedFrom, UserPrompt
from ..domain.errors import Invalid, NotFound
from ..domain.mentions import find_mentions
from ..domain.prompts import Prompt
from ..domain.snapshot import Worker
from ..log.log import SessionLog
from ..wire.keystrokes import TypingMode
from ..workers import orders
from ..workers.change_text import format_changes
from ..workers.changes import read_changes
from ..workers.orders import PromptInputs
from ..workers.worker_services import WorkerServices
from .last_answer import last_answer

MAX_IMAGE_BYTES_PER_PROMPT = 40 << 20  # one prompt is one line to the agent
MAX_RECAP_EVENTS = 5000
MAX_RECAP_CHARACTERS = 32 << 10


class PromptLookup:
    """Reads the inputs of prompts in one session."""

    def __init__(self, session_log: SessionLog, services: WorkerServices) -> None:
        self._log = session_log
        self._services = services

    async def source_text(self, origin: ForwardedFrom) -> str:
        """Return the text to forward: the current changes of a worker, or its last answer."""
        if origin.what == "diff":
            workspace = self._log.snapshot.worker(origin.worker_id).workspace
            return format_changes(await read_changes(self._services.files(workspace)))
        return await last_answer(self._services.store, self._log.id, origin.worker_id)

    async def prompt_inputs(self, order: Prompt) -> PromptInputs:
        """Read what is sent with a prompt: images, files and a recap, or how to type into the terminal.

        Raise Invalid if the images are too large together.
        """
        images, session_id = self._services.images, self._log.id
        try:
            worker = prompts.find_addressee(self._log.snapshot, order.worker_id, order.role)
        except NotFound:
            worker = None
        if worker is not None and worker.is_typed_to:
            if not prompts.accepts_prompt(self._log.snapshot, worker):
                return PromptInputs()
            paths = tuple(str(images.path(session_id, image_id)) for image_id in order.image_ids)
            return PromptInputs(typing=await self._typing_mode(worker, paths))
        found = [images.read(session_id, image_id) for image_id in order.image_ids]
        if (size := sum(len(data) for _, data in found)) > MAX_IMAGE_BYTES_PER_PROMPT:
            raise Invalid(
                f"the images of one prompt may have {MAX_IMAGE_BYTES_PER_PROMPT >> 20} MiB together, "
                f"these have {size >> 20}: send some of them with another"
            )
        encoded = [(kind, base64.b64encode(data).decode()) for kind, data in found]
        if worker is None:
            return PromptInputs(images=encoded)
        files = await asyncio.to_thread(self._mentioned_files, worker, order.text)
        return PromptInputs(images=encoded, files=files, recap=await self._recap(worker))

    def _mentioned_files(self, worker: Worker, text: str) -> list[tuple[str, str]]:
        """Return the name and the URI of each file in the workspace that a text mentions."""
        files = self._services.files(worker.workspace)
        found = (next(filter(files.has_file, names), None) for names in find_mentions(text))
        named = dict.fromkeys(name for name in found if name is not None)
        return [(name, Path(worker.workspace, name).as_uri()) for name in named]

    async def _typing_mode(self, worker: Worker, image_paths: tuple[str, ...]) -> TypingMode:
        """Return how to type a prompt with these images into the terminal of an agent."""
        recording = self._services.recording(worker.id, worker.run)
        seen = await self._services.screens.view(worker, recording)
        keys = orders.typing_keys(worker, self._services.agents)
        return TypingMode(keys=keys, bracketed=seen.bracketed_paste, image_paths=image_paths)

    async def _recap(self, worker: Worker) -> str:
        """Return the conversation so far, if the agent starts a new session; else an empty string."""
        snapshot = self._log.snapshot
        if not snapshot.conversations[worker.id].recap:
            return ""
        events = await self._services.store.events(
            snapshot.id,
            after=max(0, snapshot.last_seq - MAX_RECAP_EVENTS),
            limit=MAX_RECAP_EVENTS,
            types=[UserPrompt.type, AgentMessage.type],
        )
        return recap_text(event.fact for event, _ in events if event.worker_id == worker.id)


def recap_text(facts: Iterable[object]) -> str:
    """Return the end of a conversation as text, with the speaker of each message."""
    parts: list[str] = []
    speaker = ""
    for fact in facts:
        match fact:
            case UserPrompt():
                parts.append(f"\n\nUser: {fact.text}")
                speaker = "user"
            case AgentMessage() if fact.text:
                parts.append(fact.text if speaker == "agent" else f"\n\nAssistant: {fact.text}")
                speaker = "agent"
    text = "".join(parts).strip()[-MAX_RECAP_CHARACTERS:]
    return f"This is our conversation so far, which you have no memory of:\n\n{text}\n\n---" if text else ""
