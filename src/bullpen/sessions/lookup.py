"""What has to be looked up before a prompt can be decided: images, earlier words, the state of a screen."""

import base64
from collections.abc import Iterable

from ..domain import prompts
from ..domain.conversation import AgentMessage, ForwardedFrom, UserPrompt
from ..domain.errors import Invalid, NotFound
from ..domain.prompts import Prompt
from ..domain.snapshot import Worker
from ..log.log import SessionLog
from ..wire.keystrokes import TypingMode
from ..workers import orders
from ..workers.change_text import as_text
from ..workers.changes import read_changes
from ..workers.orders import PromptInputs
from ..workers.worker_services import WorkerServices
from .last_answer import last_answer

LARGEST_TOGETHER = 40 << 20  # bytes of images in one prompt, which is one line to its agent
RECAP_EVENTS = 5000
RECAP_LENGTH = 32 << 10


class PromptLookup:
    """In one session, as it is now."""

    def __init__(self, session_log: SessionLog, workshop: WorkerServices) -> None:
        self._log = session_log
        self._workshop = workshop

    async def words(self, origin: ForwardedFrom) -> str:
        """What is passed on, as it is at this moment."""
        if origin.what == "diff":
            workspace = self._log.snapshot.worker(origin.worker_id).workspace
            return as_text(await read_changes(self._workshop.files(workspace)))
        return await last_answer(self._workshop.store, self._log.id, origin.worker_id)

    async def given(self, order: Prompt) -> PromptInputs:
        """What goes with a prompt: images, what was said before, how its worker is typed to."""
        images, session_id = self._workshop.images, self._log.id
        try:
            worker = prompts.find_addressee(self._log.snapshot, order.worker_id, order.role)
        except NotFound:
            worker = None
        if worker is not None and worker.is_typed_to:
            if not prompts.accepts_prompt(self._log.snapshot, worker):
                return PromptInputs()
            paths = tuple(str(images.path(session_id, image_id)) for image_id in order.image_ids)
            return PromptInputs(typing=await self._typing(worker, paths))
        found = [images.read(session_id, image_id) for image_id in order.image_ids]
        if (size := sum(len(data) for _, data in found)) > LARGEST_TOGETHER:
            raise Invalid(
                f"the images of one prompt may have {LARGEST_TOGETHER >> 20} MiB together, "
                f"these have {size >> 20}: send some of them with another"
            )
        encoded = [(kind, base64.b64encode(data).decode()) for kind, data in found]
        return PromptInputs(images=encoded, recap=await self._recap(worker) if worker else "")

    async def _typing(self, worker: Worker, image_paths: tuple[str, ...]) -> TypingMode:
        recording = self._workshop.recording(worker.id, worker.run)
        seen = await self._workshop.screens.seen(worker, recording)
        keys = orders.keys_of(worker, self._workshop.agents)
        return TypingMode(keys=keys, bracketed=seen.pastes, image_paths=image_paths)

    async def _recap(self, worker: Worker) -> str:
        """What was said so far, for an agent whose session is new to it."""
        snapshot = self._log.snapshot
        if not snapshot.conversations[worker.id].recap:
            return ""
        events = await self._workshop.store.events(
            snapshot.id,
            after=max(0, snapshot.last_seq - RECAP_EVENTS),
            limit=RECAP_EVENTS,
            types=[UserPrompt.type, AgentMessage.type],
        )
        return recap_text(event.fact for event, _ in events if event.worker_id == worker.id)


def recap_text(facts: Iterable[object]) -> str:
    """The end of a conversation as text: who said what."""
    said: list[str] = []
    speaker = ""
    for fact in facts:
        match fact:
            case UserPrompt():
                said.append(f"\n\nUser: {fact.text}")
                speaker = "user"
            case AgentMessage() if fact.text:
                said.append(fact.text if speaker == "agent" else f"\n\nAssistant: {fact.text}")
                speaker = "agent"
    text = "".join(said).strip()[-RECAP_LENGTH:]
    return f"This is our conversation so far, which you have no memory of:\n\n{text}\n\n---" if text else ""
