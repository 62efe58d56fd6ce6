"""What a viewer of a terminal says most often, read in one step: keys, and how far it has drawn."""

from typing import Annotated

import msgspec

_Whole = Annotated[int, msgspec.Meta(ge=0)]


class KeyInput(msgspec.Struct, tag="input", frozen=True, gc=False):
    """Input under the viewer's own numbers."""

    n: _Whole
    data: str


class DrawnOffset(msgspec.Struct, tag="ack", frozen=True, gc=False):
    """All before this offset is on the viewer's screen."""

    offset: _Whole


_decoder: msgspec.json.Decoder[KeyInput | DrawnOffset] = msgspec.json.Decoder(KeyInput | DrawnOffset)


def read_key(text: bytes) -> KeyInput | DrawnOffset | None:
    """None for everything else, nonsense too: whoever reads every message knows what to say of it."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
