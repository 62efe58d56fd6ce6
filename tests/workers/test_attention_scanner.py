"""Bells and notifications in the output of a program, also when they arrive in two pieces."""

import pytest

from bullpen.workers.attention_scanner import AttentionScanner

BELL = "it rang the bell"


@pytest.mark.parametrize(
    ("data", "call"),
    [
        (b"done\x07", BELL),
        (b"\x1b]0;a title\x07 text", None),
        (b"\x1b]0;a title\x1b\\ text", None),
        (b"\x1b]9;Approve?\x07", "it says “Approve?”"),
        (b"\x1b]9;Approve?\x1b\\", "it says “Approve?”"),
        (b"\x1b]777;notify;Agent;needs you\x07", "it says “Agent: needs you”"),
        (b"\x1b]9;4;1;50\x07", None),
        (b"\x1b]8;;https://example.org\x07link\x1b]8;;\x07", None),
        (b"\x1bPq\x07more\x1b\\", None),
        (b"\x1b]9;one\x07 and \x1b]9;two\x07", "it says “two”"),
        (b"plain text\x1b[31m red", None),
    ],
)
def test_a_bell_is_distinguished_from_the_terminator_of_a_sequence(data: bytes, call: str | None) -> None:
    assert AttentionScanner().find_last(data) == call


def test_a_notification_in_two_pieces_is_found_once() -> None:
    data = b"text\x1b]9;may I?\x1b\\more"
    for cut in range(len(data)):
        scanner = AttentionScanner()
        found = [scanner.find_last(data[:cut]), scanner.find_last(data[cut:])]
        assert [each for each in found if each] == ["it says “may I?”"], cut


def test_a_title_in_two_pieces_is_not_a_bell() -> None:
    data = b"\x1b]0;a title\x07"
    for cut in range(len(data)):
        scanner = AttentionScanner()
        assert (scanner.find_last(data[:cut]), scanner.find_last(data[cut:])) == (None, None), cut


def test_a_notification_text_is_shortened_and_has_no_control_characters() -> None:
    call = AttentionScanner().find_last(b"\x1b]9;one\ttwo" + b"x" * 3000 + b"\x07")
    assert call is not None
    assert call.isprintable()
    assert len(call) < 100


def test_an_unterminated_sequence_is_given_up_and_later_bells_are_found() -> None:
    scanner = AttentionScanner()
    for _ in range(100):
        scanner.find_last(b"\x1b]0;" + b"x" * 8192)
    assert scanner.find_last(b"\x1b\\\x07") == BELL
