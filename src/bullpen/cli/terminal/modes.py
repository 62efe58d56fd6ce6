"""Record the terminal modes that a program has changed, to restore them afterwards."""

_ON_BY_DEFAULT = frozenset({b"7", b"25"})  # wrapping, the cursor
_ALTERNATE = frozenset({b"47", b"1047", b"1049"})
_COLOURS = frozenset({b"4", b"10", b"11", b"12"})


class TerminalModes:
    """The private modes and other settings that output has changed so far."""

    def __init__(self) -> None:
        self._changed: dict[bytes, None] = {}  # in the order they were changed
        self._undo: dict[str, bytes] = {}

    @property
    def alternate(self) -> bool:
        """Whether the alternate screen is shown."""
        return not _ALTERNATE.isdisjoint(self._changed)

    def reset(self) -> None:
        """Forget all changes, because the program has reset the terminal."""
        self._changed.clear()
        self._undo.clear()

    def record_private(self, numbers: list[bytes], on: bool) -> None:
        """Record that private modes were switched on or off."""
        for number in numbers:
            if on != (number in _ON_BY_DEFAULT):
                self._changed[number] = None
            else:
                self._changed.pop(number, None)

    def record_control(self, prefix: bytes, final: bytes) -> None:
        """Record a control sequence, given by the bytes before and after its parameters."""
        match prefix, final:
            case (b">" | b"=", b"u"):
                self._undo["keyboard"] = b"\x1b[<99u\x1b[=0u"
            case (b">", b"m"):
                self._undo["modified keys"] = b"\x1b[>4;0m"
            case (b"", b"r"):
                self._undo["scroll region"] = b"\x1b7\x1b[r\x1b8"
            case (b"", b" q"):
                self._undo["cursor shape"] = b"\x1b[0 q"

    def record_colour(self, number: bytes) -> None:
        """Record that an OSC command has changed a colour."""
        if number in _COLOURS:
            self._undo[f"colour {number!r}"] = b"\x1b]%d\x07" % (100 + int(number))

    def restore(self) -> bytes:
        """Return the sequences that undo all changes, the newest first."""
        undo = [
            b"\x1b[?%b%b" % (number, b"h" if number in _ON_BY_DEFAULT else b"l")
            for number in reversed(self._changed)
        ]
        undo += [*self._undo.values(), b"\x1b[0m\x1b(B\x0f\x1b>"]
        self.reset()
        return b"".join(undo)
