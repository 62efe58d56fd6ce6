"""`read_key` reads keystrokes and acknowledgements; it leaves every other message to the general parser."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.wire.viewer_messages import DrawnOffset, KeyInput, read_key


@given(n=st.integers(0, 1 << 70), data=st.text())
def test_a_keystroke_is_read_with_its_number(n: int, data: str) -> None:
    assert read_key(json.dumps({"type": "input", "n": n, "data": data}).encode()) == KeyInput(n, data)


@given(offset=st.integers(0, 1 << 62))
def test_an_acknowledgement_is_read_with_its_offset(offset: int) -> None:
    assert read_key(json.dumps({"offset": offset, "type": "ack"}).encode()) == DrawnOffset(offset)


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"input","data":"a"}',
        '{"type":"input","n":1,"base64":"YQ=="}',
        '{"type":"input","n":-1,"data":"a"}',
        '{"type":"input","n":1.0,"data":"a"}',
        '{"type":"input","n":true,"data":"a"}',
        '{"type":"input","n":1,"data":null}',
        '{"type":"input","n":1,"data":"\\ud800"}',
        '{"type":"ack","offset":"1"}',
        '{"type":"ack","offset":-1}',
        '{"type":"resize","cols":80,"rows":24}',
        '{"n":1,"data":"a"}',
        '["input",1,"a"]',
        "[" * 100_000,
        '{"type":"input","x":' + "[" * 100_000,
        "input",
        "",
    ],
    ids=lambda text: text[:40] or "nothing",
)
def test_every_other_message_is_left_to_the_general_parser(text: str) -> None:
    assert read_key(text.encode(errors="surrogatepass")) is None
