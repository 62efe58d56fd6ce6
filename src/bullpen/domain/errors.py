"""The exceptions that Bullpen raises, classed by what the caller can do; `code` is part of the API."""

from typing import Self


class BullpenError(Exception):
    """Base class. The text is one sentence for a user, with advice where that helps.

    `details` is any JSON value with further information for a program or an interested user.
    """

    code = "internal"
    details: object = None
    retry_after: int | None = None  # seconds, when the same request may succeed later

    def with_details(self, details: object) -> Self:
        """Set `details` and return the exception itself."""
        self.details = details
        return self


class NotFound(BullpenError):
    """The object does not exist."""

    code = "not_found"


class Conflict(BullpenError):
    """The current state does not allow the request."""

    code = "conflict"


class Invalid(BullpenError):
    """The request or its data is invalid."""

    code = "invalid"


class TooLarge(BullpenError):
    """The request or its data exceeds a size limit."""

    code = "too_large"


class UnsupportedType(BullpenError):
    """The media type is not supported."""

    code = "unsupported_media_type"


class Unauthorized(BullpenError):
    """The request has no valid credential."""

    code = "unauthorized"


class Forbidden(BullpenError):
    """The credential is valid and does not allow this request."""

    code = "forbidden"


class TooMany(BullpenError):
    """A limit is reached; the same request may succeed later."""

    code = "too_many"
    retry_after: int = 60


class Unavailable(BullpenError):
    """A resource (the database, file descriptors, memory) is unavailable for now. Nothing was changed."""

    code = "unavailable"
    retry_after: int | None = 5


class StorageFull(Unavailable):
    """The disk has no room for another event."""

    code = "storage_full"
    retry_after = None  # it lasts until a user frees some space


class RemoteFault(BullpenError):
    """The agent, git or the keeper failed or broke its protocol."""

    code = "remote_fault"


class EmptyMessage(Invalid):
    """A message has neither text nor an image."""

    code = "empty_message"


class QueueFull(Conflict):
    """The message queue holds as many messages as its settings allow."""

    code = "queue_full"
