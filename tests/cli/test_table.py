"""Tables are laid out for the width of the terminal."""

from bullpen.cli.table import TableColumn, lay_out, path_column
from bullpen.cli.text import fit, fit_path, width

COLUMNS = (TableColumn("NAME", least=6), TableColumn("ID"), TableColumn("PLACE", least=6))
ROWS = [
    ["a rather long name for a session", "12345678", "/somewhere/quite/far/down"],
    ["日本語の名前", "87654321", "/x"],
]


def test_with_enough_width_no_cell_is_cut() -> None:
    lines = lay_out(COLUMNS, ROWS, None)
    assert lines[1].startswith("a rather long name for a session  12345678  /somewhere")
    assert "…" not in "".join(lines)


def test_every_line_fits_a_narrow_terminal_and_ids_stay_whole() -> None:
    for columns in range(30, 80):
        lines = lay_out(COLUMNS, ROWS, columns)
        assert all(width(line) <= columns for line in lines)
        assert "12345678" in lines[1]


def test_columns_are_aligned_in_every_script() -> None:
    lines = lay_out(COLUMNS, ROWS, None)
    assert width(lines[1].partition("12345678")[0]) == width(lines[2].partition("87654321")[0])


def test_a_cell_contains_no_control_sequence_or_newline() -> None:
    (line,) = lay_out((TableColumn(""),), [["evil\x1b[2J\nname"]], None)
    assert "\x1b" not in line
    assert "\n" not in line


def test_a_text_is_cut_by_its_width_in_columns() -> None:
    assert fit("abc", 3) == "abc"
    assert fit("abcd", 3) == "ab…"
    assert width(fit("日本語", 4)) <= 4
    assert width("e\u0301") == 1


def test_a_path_is_shortened_in_the_middle() -> None:
    path = "~/code/customers/north/bullpen/src/frontend"
    (_, line) = lay_out([path_column("DIRECTORY", least=8)], [[path]], 24)
    assert (line[:7], line[-8:], len(line)) == ("~/code/", "frontend", 24)
    assert fit_path("/short", 24) == "/short"
    assert fit_path("DIRECTORY", 8) == "DIRECTO…", "the title of its column"
    assert fit_path(path, 3) == "~/…"
