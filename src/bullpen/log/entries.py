"""Make an event storable in any database, whatever text an agent or a file put into it."""

from msgspec.structs import replace

from ..domain.events import Event, read_fact
from ..store.append import EventEntry
from ..wire.json import clean_text, storable
from ..wire.plain_json import plain_json


def storable_entry(event: Event) -> EventEntry:
    """Return the event with its data as JSON; invalid text is replaced.

    The returned event is exactly the one that is read back later, so that a fold gives the same result.
    """
    if event.role is not None and (role := clean_text(event.role)) != event.role:
        event = replace(event, role=role)
    if data := plain_json(event.fact):
        return EventEntry(event, data)
    original = event.fact.to_data()
    cleaned, data = storable(original)
    if cleaned is not original:
        event = replace(event, fact=read_fact(event.type, cleaned))
    return EventEntry(event, data)
