"""Who types at a socket: whether they may, under which names, and who makes room for it."""

from ...domain.errors import Forbidden, Invalid
from ...domain.ids import is_safe_id, new_id
from ...sessions.background_throttle import BackgroundThrottle
from ..scopes import Principal, Scope


class InputWriter:
    """Input under the client's own numbers is taken once however often it comes."""

    def __init__(self, client: str | None, principal: Principal, throttle: BackgroundThrottle) -> None:
        if client is not None and not is_safe_id(client):
            raise Invalid("client must be a short plain id")
        self.writer = client or new_id()
        self.may_type = principal.scope >= Scope.OPERATE
        self.has_typed = throttle.note_keystroke
        self._unnumbered = new_id()
        self._count = 0

    def require(self) -> None:
        if not self.may_type:
            raise Forbidden("looking is allowed, typing is not")

    def next_number(self) -> tuple[str, int]:
        """For input that has none: a number of ours, under a writer of its own, at most once."""
        self._count += 1
        return self._unnumbered, self._count
