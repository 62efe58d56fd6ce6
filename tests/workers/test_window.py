"""A terminal has the size of the viewer that used it last."""

from bullpen.workers.window import TerminalWindow, WindowSize

LAPTOP, PHONE = WindowSize(120, 40), WindowSize(45, 30)


def window_with_two_viewers() -> tuple[TerminalWindow, list[str]]:
    window, notified = TerminalWindow(WindowSize(80, 24)), []
    for name in ("laptop", "phone"):
        window.add_viewer(name, lambda name=name: notified.append(name))  # type: ignore[misc]
    assert window.request_size("laptop", LAPTOP) == LAPTOP
    assert window.request_size("phone", PHONE) is None
    notified.clear()
    return window, notified


def test_a_viewer_that_takes_the_window_sets_its_size_and_all_viewers_are_notified() -> None:
    window, notified = window_with_two_viewers()
    assert window.request_size("phone", PHONE, take=True) == PHONE
    assert (window.owner, window.size) == ("phone", PHONE)
    assert {"laptop", "phone"} == set(notified)


def test_the_owner_of_a_window_cannot_take_it_again() -> None:
    window, notified = window_with_two_viewers()
    assert window.request_size("laptop", LAPTOP, take=True) is None
    assert notified == []


def test_typing_takes_the_window() -> None:
    window, _ = window_with_two_viewers()
    assert window.take_by_input("phone") == PHONE
    assert window.request_size("laptop", LAPTOP) is None
