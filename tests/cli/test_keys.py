"""Keys that detach, and keys that are sent to the program."""

import pytest

from bullpen.cli.terminal.keys import DetachKeys, TypedInput


def typed(*pieces: bytes) -> TypedInput:
    """Return the result of typing these pieces one after the other."""
    keys = DetachKeys()
    data = b""
    for piece in pieces:
        sent, detach = keys.feed(piece)
        data += sent
        if detach:
            return TypedInput(data, True)
    return TypedInput(data, False)


@pytest.mark.parametrize("key", [b"\x1d", b"\x1b[93;5u", b"\x1b[93;5:1u", b"\x1b[27;5;93~"])
def test_control_bracket_detaches_in_every_keyboard_protocol(key: bytes) -> None:
    assert typed(b"ls", key) == (b"ls", True)


def test_nothing_after_the_detach_key_is_sent() -> None:
    assert typed(b"a\x1db") == (b"a", True)


@pytest.mark.parametrize("pieces", [(b"~.",), (b"~", b"."), (b"ls\r", b"~", b"."), (b"ls\n~.",)])
def test_tilde_dot_detaches_at_the_start_of_a_line(pieces: tuple[bytes, ...]) -> None:
    assert typed(*pieces).detach


@pytest.mark.parametrize("text", [b"cd ~.", b"a~.b", b"x~", b".", b"..\r..", b"~/src\r", b"~a.", b"ls ~\r"])
def test_other_tildes_and_dots_reach_the_program(text: bytes) -> None:
    assert typed(text) == (text, False)
    assert typed(*(bytes([byte]) for byte in text)) == (text, False)


def test_a_tilde_at_the_start_of_a_line_waits_for_the_next_key() -> None:
    keys = DetachKeys()
    assert keys.feed(b"~") == (b"", False)
    assert keys.feed(b"x") == (b"~x", False)


def test_two_tildes_send_one() -> None:
    assert typed(b"~~") == (b"~", False)
    assert typed(b"~~.") == (b"~.", False)


def test_keys_in_a_paste_do_not_detach() -> None:
    paste = b"\x1b[200~line\r~.\x1d~.\x1b[201~"
    assert typed(paste) == (paste, False)
    assert typed(paste, b"\x1d") == (paste, True)


def test_other_sequences_pass_unchanged() -> None:
    keys = b"\x1b[A\x1bOB\x1b[1;5C\x1b\x1b[Z\x00\xff\xc3\xa4"
    assert typed(keys) == (keys, False)
