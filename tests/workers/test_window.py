"""Whose size a terminal has."""

from bullpen.workers.window import TerminalWindow, WindowSize

LAPTOP, PHONE = WindowSize(120, 40), WindowSize(45, 30)


def seen_by_two() -> tuple[TerminalWindow, list[str]]:
    window, told = TerminalWindow(WindowSize(80, 24)), []
    for name in ("laptop", "phone"):
        window.add_viewer(name, lambda name=name: told.append(name))  # type: ignore[misc]
    assert window.request_size("laptop", LAPTOP) == LAPTOP
    assert window.request_size("phone", PHONE) is None
    told.clear()
    return window, told


def test_a_viewer_that_takes_over_has_its_size_and_everybody_hears() -> None:
    window, told = seen_by_two()
    assert window.request_size("phone", PHONE, take=True) == PHONE
    assert (window.owner, window.size) == ("phone", PHONE)
    assert {"laptop", "phone"} == set(told)


def test_a_size_that_is_yours_is_not_taken_again() -> None:
    window, told = seen_by_two()
    assert window.request_size("laptop", LAPTOP, take=True) is None
    assert told == []


def test_typing_takes_over_as_well() -> None:
    window, _ = seen_by_two()
    assert window.take_by_input("phone") == PHONE
    assert window.request_size("laptop", LAPTOP) is None
