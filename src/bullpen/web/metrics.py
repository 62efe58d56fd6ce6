"""Collect the metrics of the server, and write them in the text format of Prometheus."""

import os
import resource
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from .. import __version__
from ..domain.states import SessionStatus, WorkerState
from .context import WebContext

Samples = Mapping[tuple[tuple[str, str], ...], float]  # by labels


class Metric(NamedTuple):
    """One metric with its samples."""

    name: str
    kind: str  # gauge or counter
    help: str
    samples: Samples


def text_format(metrics: Iterable[Metric]) -> str:
    """Return the metrics in the text format of Prometheus."""
    return "".join(_lines(metric) for metric in metrics)


class MetricsCollector:
    """Reads the current values of all metrics."""

    def __init__(self, context: WebContext, sessions: Mapping[str, int], workers: Mapping[str, int]) -> None:
        self._context = context
        self._sessions = sessions
        self._workers = workers

    def all(self) -> list[Metric]:
        """Return all metrics with their current values."""
        return [
            *self._session_metrics(),
            *self._traffic_metrics(),
            *self._store_metrics(),
            *self._process_metrics(),
        ]

    def _session_metrics(self) -> list[Metric]:
        """Return metrics of sessions, workers and keepers."""
        sessions = {status.value: self._sessions.get(status, 0) for status in SessionStatus}
        workers = {state.value: self._workers.get(state, 0) for state in WorkerState}
        keeper = self._context.sessions.services.children.has_keeper
        return [
            _gauge("bullpen_sessions", "Sessions by status.", _by("status", sessions)),
            _gauge("bullpen_workers", "Workers by state.", _by("state", workers)),
            _gauge("bullpen_keeper_up", "Whether a keeper takes new children.", _single(keeper)),
        ]

    def _traffic_metrics(self) -> list[Metric]:
        """Return metrics of connections, sockets and answers."""
        sockets, traffic = self._context.credentials.sockets.by_route, self._context.traffic
        viewers = sum(count for route, count in sockets.items() if route.startswith("/ws/session/"))
        answers = {str(status): count for status, count in traffic.answers.items()}
        return [
            _gauge("bullpen_sockets", "Open sockets by route.", _by("route", sockets)),
            _gauge(
                "bullpen_unauthenticated_connections",
                "Open connections that have shown no credential.",
                _single(len(self._context.connections)),
            ),
            _counter(
                "bullpen_evicted_connections_total",
                "Connections without a credential that were closed because too many were open.",
                _single(self._context.connections.evicted),
            ),
            _gauge("bullpen_viewers", "Viewers of sessions and terminals.", _single(viewers)),
            _counter("bullpen_bytes_out_total", "Bytes sent to clients.", _single(traffic.bytes_out)),
            _counter("bullpen_http_answers_total", "Answers by status.", _by("status", answers)),
        ]

    def _store_metrics(self) -> list[Metric]:
        """Return metrics of the database."""
        store = self._context.sessions.store
        commits = store.database.writer.transactions.committed
        return [
            _counter("bullpen_events_appended_total", "Events stored.", _single(store.appended_events)),
            _counter("bullpen_commits_total", "Transactions committed.", _single(commits)),
            _gauge("bullpen_storage_full", "Whether the disk has no room.", _single(store.full)),
            _gauge(
                "bullpen_database_up",
                "Whether the database answers.",
                _single(not store.database.unreachable),
            ),
        ]

    def _process_metrics(self) -> list[Metric]:
        """Return metrics of the server process."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        files = len(os.listdir("/proc/self/fd"))
        return [
            _gauge("bullpen_build_info", "The version that runs.", _by("version", {__version__: 1})),
            _counter("process_cpu_seconds_total", "CPU time.", _single(usage.ru_utime + usage.ru_stime)),
            _gauge("process_resident_memory_bytes", "Memory in use.", _single(_resident_bytes())),
            _gauge("process_open_fds", "Open files and sockets.", _single(files)),
        ]


def _gauge(name: str, help: str, samples: Samples) -> Metric:
    """Return a metric whose value can rise and fall."""
    return Metric(name, "gauge", help, samples)


def _counter(name: str, help: str, samples: Samples) -> Metric:
    """Return a metric whose value only rises."""
    return Metric(name, "counter", help, samples)


def _single(value: float) -> Samples:
    """Return a single sample without labels."""
    return {(): value}


def _by(label: str, values: Mapping[str, float]) -> Samples:
    """Return a sample for each value of one label."""
    return {((label, key),): value for key, value in sorted(values.items())}


def _resident_bytes() -> int:
    """Return the resident memory of the process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _lines(metric: Metric) -> str:
    """Return the lines of one metric."""
    head = f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
    return head + "".join(
        f"{metric.name}{_labels(labels)} {float(value):.15g}\n" for labels, value in metric.samples.items()
    )


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    """Return labels as text, in braces."""
    if not labels:
        return ""
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inside}}}"


def _escaped(value: str) -> str:
    """Escape a label value for the text format."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
