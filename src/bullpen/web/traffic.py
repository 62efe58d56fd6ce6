"""Count sent bytes and HTTP answers, for the metrics."""

from collections import Counter


class TrafficCounters:
    """Bytes sent and answers by status, since the server started."""

    def __init__(self) -> None:
        self.bytes_out = 0
        self.answers: Counter[int] = Counter()  # by status
