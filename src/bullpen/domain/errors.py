"""What can go wrong, by who has to do something about it; `code` is part of the contract."""

from typing import Self


class BullpenError(Exception):
    """Text for a person, in one sentence that says what to do where that helps.

    `details` are for a program, or for a person who wants to know it exactly: whatever JSON can say.
    """

    code = "internal"
    details: object = None
    retry_after: int | None = None  # seconds, when the same request may succeed later

    def with_details(self, details: object) -> Self:
        self.details = details
        return self


class NotFound(BullpenError):
    code = "not_found"


class Conflict(BullpenError):
    """The state does not allow it."""

    code = "conflict"


class Invalid(BullpenError):
    """The request makes no sense."""

    code = "invalid"


class TooLarge(BullpenError):
    """More than we take."""

    code = "too_large"


class UnsupportedType(BullpenError):
    """Not a kind of thing we take."""

    code = "unsupported_media_type"


class Unauthorized(BullpenError):
    """Nobody we know."""

    code = "unauthorized"


class Forbidden(BullpenError):
    """Somebody we know, who may not."""

    code = "forbidden"


class TooMany(BullpenError):
    """A limit is reached; it can be tried again later."""

    code = "too_many"
    retry_after: int = 60


class Unavailable(BullpenError):
    """A resource (the database, file descriptors, memory) cannot be used now. Nothing was changed."""

    code = "unavailable"
    retry_after: int | None = 5


class StorageFull(Unavailable):
    """The disk has no room for another event."""

    code = "storage_full"
    retry_after = None  # until a person frees some space


class RemoteFault(BullpenError):
    """The agent, git or the keeper broke its side."""

    code = "remote_fault"


class EmptyMessage(Invalid):
    """A message with nothing in it."""

    code = "empty_message"


class QueueFull(Conflict):
    """The queue takes no more for now."""

    code = "queue_full"
