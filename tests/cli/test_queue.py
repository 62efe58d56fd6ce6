"""Times that a user writes for `bullpen queue add --at`."""

from datetime import UTC, datetime, timedelta

import pytest

from bullpen.cli.queue import parse_send_time
from bullpen.domain.errors import Invalid

NOW = datetime(2026, 3, 1, 12, 30, 30, tzinfo=UTC).timestamp() * 1000


@pytest.mark.parametrize("text", ["00:00", "09:05", "23:59", "12:30"])
def test_a_time_of_day_is_its_next_occurrence(text: str) -> None:
    time, now = parse_send_time(text, round(NOW)), datetime.fromtimestamp(NOW / 1000, UTC)
    assert f"{time:%H:%M}" == text
    assert timedelta(0) < time - now <= timedelta(days=1)


def test_a_date_and_a_time_are_used_unchanged() -> None:
    assert parse_send_time("2026-03-02T18:30+01:00", round(NOW)) == datetime(2026, 3, 2, 17, 30, tzinfo=UTC)
    assert f"{parse_send_time('2026-03-02T18:30', round(NOW)):%Y-%m-%d %H:%M}" == "2026-03-02 18:30"


@pytest.mark.parametrize("text", ["soon", "25:00", "2026-13-01T00:00", ""])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Invalid, match="like 18:30"):
        parse_send_time(text, round(NOW))
