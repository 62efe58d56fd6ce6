"""The websockets library decodes the frames that the server encodes."""

from collections.abc import Generator

import pytest
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from bullpen.web.websocket import Frame as EncodedFrame
from bullpen.web.websocket import output_frame, text_frame


def read_frame(encoded: EncodedFrame) -> Frame:
    reader = StreamReader()
    reader.feed_data(b"".join(encoded))
    reader.feed_eof()
    parser: Generator[None, None, Frame] = Frame.parse(reader.read_exact, mask=False)
    with pytest.raises(StopIteration) as done:
        next(parser)
    frame: Frame = done.value.value
    return frame


@pytest.mark.parametrize("length", [0, 1, 117, 118, 119, 125, 126, 127, 65_527, 65_528, 65_536, 1 << 20])
def test_an_output_frame_is_decoded_with_its_offset_and_all_its_data(length: int) -> None:
    data, offset = bytes(length), (1 << 40) + length
    frame = read_frame(output_frame(offset, data))
    assert (frame.opcode, frame.fin, frame.data) == (Opcode.BINARY, True, offset.to_bytes(8, "big") + data)


def test_a_text_frame_is_decoded_as_text() -> None:
    frame = read_frame(text_frame(b'{"type":"events"}'))
    assert (frame.opcode, frame.fin, frame.data) == (Opcode.TEXT, True, b'{"type":"events"}')
