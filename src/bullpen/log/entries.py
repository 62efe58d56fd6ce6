"""Events on their way into the database: whatever an agent or a file says, it can be stored."""

from msgspec.structs import replace

from ..domain.events import Event, read_fact
from ..store.append import EventEntry
from ..wire.json import clean_text, storable
from ..wire.plain import plain_json


def storable_entry(event: Event) -> EventEntry:
    """The event with its data; what is folded now is what a fold of the stored event gives later."""
    if event.role is not None and (role := clean_text(event.role)) != event.role:
        event = replace(event, role=role)
    if data := plain_json(event.fact):
        return EventEntry(event, data)
    said = event.fact.to_data()
    kept, data = storable(said)
    return EventEntry(event if kept is said else replace(event, fact=read_fact(event.type, kept)), data)
