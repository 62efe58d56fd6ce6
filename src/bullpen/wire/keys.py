"""What a viewer of a terminal says most often, read in one step: keys, and how far it has drawn."""

from typing import Annotated

import msgspec

_Whole = Annotated[int, msgspec.Meta(ge=0)]


class Key(msgspec.Struct, tag="input", frozen=True, gc=False):
    """Input under the viewer's own numbers."""

    n: _Whole
    data: str


class Drawn(msgspec.Struct, tag="ack", frozen=True, gc=False):
    """All before this offset is on the viewer's screen."""

    offset: _Whole


_decoder: msgspec.json.Decoder[Key | Drawn] = msgspec.json.Decoder(Key | Drawn)


def read_key(text: bytes) -> Key | Drawn | None:
    """None for everything else, nonsense too: whoever reads every message knows what to say of it."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
