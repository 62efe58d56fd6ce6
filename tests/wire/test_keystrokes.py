"""The bytes that are typed to a terminal agent."""

from bullpen.domain.screen_patterns import TypingKeys
from bullpen.wire.keystrokes import PIECE_BYTES, TypingMode, interrupt, strip_controls


def typed(
    text: str, bracketed: bool = True, keys: TypingKeys | None = None, images: tuple[str, ...] = ()
) -> list[bytes]:
    typing = TypingMode(keys=keys or TypingKeys(), bracketed=bracketed, image_paths=images)
    return [each.data for each in typing.prompt(text)]


def test_a_text_is_pasted_and_the_submit_key_is_sent_separately() -> None:
    assert typed("hello\nthere") == [b"\x1b[200~hello\nthere\x1b[201~", b"\r"]


def test_a_long_text_is_typed_in_pieces() -> None:
    *pieces, submit = typed("x" * (3 * PIECE_BYTES))
    assert len(pieces) == 4
    assert b"".join(pieces) == b"\x1b[200~" + b"x" * (3 * PIECE_BYTES) + b"\x1b[201~"
    assert submit == b"\r"


def test_control_characters_are_removed_so_that_no_text_ends_the_paste() -> None:
    every = "".join(map(chr, range(0x20))) + "\x7f" + "".join(map(chr, range(0x80, 0xA0)))
    assert strip_controls(f"a{every}b\x1b[201~\r\ud800") == "a\t\n\nb[201~\n?"


def test_without_bracketed_paste_a_line_break_is_the_newline_key_of_the_definition() -> None:
    assert typed("a\r\nb", bracketed=False, keys=TypingKeys(newline="\\\r", submit="\n")) == [
        b"a\\\rb",
        b"\n",
    ]


def test_the_paths_of_images_follow_the_text() -> None:
    keys = TypingKeys(image="@{path}")
    assert typed("see", keys=keys, images=("/a.png", "/b.png"))[0] == b"\x1b[200~see @/a.png @/b.png\x1b[201~"
    assert typed("", keys=keys, images=("/a.png",))[0] == b"\x1b[200~@/a.png\x1b[201~"


def test_the_interrupt_key_is_recorded_as_a_cancel() -> None:
    key = interrupt(TypingKeys(interrupt="\x03"))
    assert (key.line(7), key.fact(7).to_data()) == (b"\x03", {"n": 7, "method": "session/cancel"})
