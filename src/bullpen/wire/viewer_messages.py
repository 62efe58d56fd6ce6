"""Decode the frequent messages of a terminal viewer in one step: keystrokes and drawing acknowledgements."""

from typing import Annotated

import msgspec

_NonNegative = Annotated[int, msgspec.Meta(ge=0)]


class KeyInput(msgspec.Struct, tag="input", frozen=True, gc=False):
    """Typed input from a terminal viewer, numbered by the viewer."""

    n: _NonNegative
    data: str


class DrawnOffset(msgspec.Struct, tag="ack", frozen=True, gc=False):
    """A terminal viewer has drawn all output before this offset."""

    offset: _NonNegative


_decoder: msgspec.json.Decoder[KeyInput | DrawnOffset] = msgspec.json.Decoder(KeyInput | DrawnOffset)


def read_key(text: bytes) -> KeyInput | DrawnOffset | None:
    """Return a viewer's keystroke or acknowledgement; None for another or an invalid message.

    The general parser then handles the message.
    """
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
