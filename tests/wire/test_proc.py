"""Parse the kernel's tables of sockets and the command lines of programs."""

import sys

import pytest

from bullpen.wire.proc import ListeningSocket, program_name, read_listeners

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
REST = "00000000:00000000 00:00000000 00000000  1000        0"


def table(*rows: tuple[str, str, str]) -> str:
    lines = [
        f"   {n}: {local} 00000000:0000 {state} {REST} {inode} 1 0000000000000000 100 0 0 10 0"
        for n, (local, state, inode) in enumerate(rows)
    ]
    return HEAD + "\n".join(lines) + "\n"


def hexed(*words: int) -> str:
    """Return 32-bit words in network order as the kernel of this machine prints them."""
    return "".join(f"{int.from_bytes(word.to_bytes(4, 'big'), sys.byteorder):08X}" for word in words)


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ((0x7F000001,), "127.0.0.1"),
        ((0,), "0.0.0.0"),
        ((0xC0A80105,), "192.168.1.5"),
        ((0, 0, 0, 0), "::"),
        ((0, 0, 0, 1), "::1"),
        ((0xFE800000, 0, 0, 0x12345678), "fe80::1234:5678"),
        ((0, 0, 0xFFFF, 0x7F000001), "127.0.0.1"),  # an IPv4 address in IPv6, as Java programs use
    ],
)
def test_an_address_is_returned_in_its_usual_notation(words: tuple[int, ...], address: str) -> None:
    assert read_listeners(table((f"{hexed(*words)}:0BB8", "0A", "4711"))) == [
        ListeningSocket(4711, address, 3000)
    ]


def test_only_listening_sockets_are_returned() -> None:
    here = f"{hexed(0x7F000001)}:1F90"
    rows = [(here, state, str(n)) for n, state in enumerate(("01", "06", "0A", "08"))]
    assert read_listeners(table(*rows)) == [ListeningSocket(2, "127.0.0.1", 8080)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEAD,
        "\0\0",
        HEAD + "   0: 0100",
        table(("nonsense:0BB8", "0A", "1")),
        table(("0100:0BB8", "0A", "1")),
        table((f"{hexed(1)}:port", "0A", "1")),
        table((f"{hexed(1)}:0BB8", "0A", "inode")),
    ],
)
def test_an_invalid_table_has_no_listeners(text: str) -> None:
    assert read_listeners(text) == []


@pytest.mark.parametrize(
    ("arguments", "name", "expected"),
    [
        (b"/usr/bin/python3\0-m\0http.server\0", b"python3\n", "python3"),
        (b"npm run dev\0\0\0", b"node\n", "npm run dev"),
        (b"", b"kworker\n", "kworker"),
        (b"", b"", ""),
        ("größe\0".encode(), b"x", "größe"),
        (b"two\nlines\x1b[31m\0", b"x", "two\ufffdlines\ufffd[31m"),
        ("turned\u202e\0".encode(), b"x", "turned\ufffd"),
        (b"\xff\xfe\0", b"x", "\ufffd\ufffd"),
        (b"a" * 5000, b"x", "a" * 100),
    ],
)
def test_a_program_has_a_name_on_one_printable_line(arguments: bytes, name: bytes, expected: str) -> None:
    assert program_name(arguments, name) == expected
