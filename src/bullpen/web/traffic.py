"""What went through the doors since the start."""

from collections import Counter


class TrafficCounters:
    def __init__(self) -> None:
        self.bytes_out = 0
        self.answers: Counter[int] = Counter()  # by status
