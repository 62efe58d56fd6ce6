"""The input side of a terminal socket: the permission to type, and the numbering of input."""

from ...domain.errors import Forbidden, Invalid
from ...domain.ids import is_safe_id, new_id
from ...sessions.background_throttle import BackgroundThrottle
from ..scopes import Principal, Scope


class InputWriter:
    """Numbers the input of one socket.

    Input with the client's own numbers has an effect only once, even if the client sends it again.
    """

    def __init__(self, client: str | None, principal: Principal, throttle: BackgroundThrottle) -> None:
        if client is not None and not is_safe_id(client):
            raise Invalid("client must be a short plain id")
        self.writer = client or new_id()
        self.may_type = principal.scope >= Scope.OPERATE
        self.note_keystroke = throttle.note_keystroke
        self._unnumbered = new_id()
        self._count = 0

    def require_may_type(self) -> None:
        """Raise Forbidden if the client may not type."""
        if not self.may_type:
            raise Forbidden("you may view this terminal, but not type into it")

    def next_number(self) -> tuple[str, int]:
        """Return a writer and number for input that has no number; it is delivered at most once."""
        self._count += 1
        return self._unnumbered, self._count
