"""What the sandbox has refused to the runs of a session and a user could allow."""

from msgspec import Struct
from msgspec.structs import replace

from .events import Draft, Event, SandboxRefusal, SandboxRefusalSeen

MAX_REFUSALS = 50  # of a session; an agent may try any number of paths


class OpenRefusal(Struct, frozen=True, kw_only=True):
    """The first refusal of a host or path in a session. With `seen` the user took it off the inbox."""

    worker_id: str
    seq: int
    since: int
    fact: SandboxRefusal
    seen: bool = False


def fold_refusals(refusals: tuple[OpenRefusal, ...], event: Event) -> tuple[OpenRefusal, ...]:
    """Return the refusals after an event. Those that no grant allows, and repeated ones, are left out."""
    match event.fact:
        case SandboxRefusal(can_be_allowed=True) as fact if event.worker_id is not None:
            if len(refusals) >= MAX_REFUSALS or any(_is_about(each, fact) for each in refusals):
                return refusals
            added = OpenRefusal(worker_id=event.worker_id, seq=event.seq, since=event.timestamp, fact=fact)
            return (*refusals, added)
        case SandboxRefusalSeen() as fact:
            return tuple(replace(each, seen=each.seen or _is_about(each, fact)) for each in refusals)
        case _:
            return refusals


def mark_refusals_seen(refusals: tuple[OpenRefusal, ...], seq: int | None) -> list[Draft]:
    """Take the refusal of event `seq` off the inbox; without `seq`, all of them."""
    wanted = [each.fact for each in refusals if not each.seen and seq in (None, each.seq)]
    return [Draft(SandboxRefusalSeen(kind=fact.kind, target=fact.target)) for fact in wanted]


def _is_about(refusal: OpenRefusal, fact: SandboxRefusal | SandboxRefusalSeen) -> bool:
    """Return whether a fact has the kind and target of a refusal."""
    return (refusal.fact.kind, refusal.fact.target) == (fact.kind, fact.target)
