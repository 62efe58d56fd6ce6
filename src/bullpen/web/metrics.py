"""The figures of a running house, and Prometheus' text format, which is simple enough to write by hand."""

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


def text_format(figures: Iterable[Metric]) -> str:
    return "".join(_lines(figure) for figure in figures)


class MetricsCollector:
    """Everything we count, at this moment."""

    def __init__(self, context: WebContext, sessions: Mapping[str, int], workers: Mapping[str, int]) -> None:
        self._context = context
        self._sessions = sessions
        self._workers = workers

    def all(self) -> list[Metric]:
        return [*self._house(), *self._doors(), *self._store(), *self._process()]

    def _house(self) -> list[Metric]:
        sessions = {status.value: self._sessions.get(status, 0) for status in SessionStatus}
        workers = {state.value: self._workers.get(state, 0) for state in WorkerState}
        keeper = self._context.sessions.services.children.has_keeper
        return [
            _gauge("bullpen_sessions", "Sessions by status.", _by("status", sessions)),
            _gauge("bullpen_workers", "Workers by state.", _by("state", workers)),
            _gauge("bullpen_keeper_up", "Whether a keeper takes new children.", _one(keeper)),
        ]

    def _doors(self) -> list[Metric]:
        sockets, traffic = self._context.credentials.sockets.by_route, self._context.traffic
        viewers = sum(count for route, count in sockets.items() if route.startswith("/ws/session/"))
        answers = {str(status): count for status, count in traffic.answers.items()}
        return [
            _gauge("bullpen_sockets", "Open sockets by route.", _by("route", sockets)),
            _gauge(
                "bullpen_unauthenticated_connections",
                "Open connections that have shown no credential.",
                _one(len(self._context.connections)),
            ),
            _counter(
                "bullpen_evicted_connections_total",
                "Connections without a credential that were closed because too many were open.",
                _one(self._context.connections.evicted),
            ),
            _gauge("bullpen_viewers", "Viewers of sessions and terminals.", _one(viewers)),
            _counter("bullpen_bytes_out_total", "Bytes sent to clients.", _one(traffic.bytes_out)),
            _counter("bullpen_http_answers_total", "Answers by status.", _by("status", answers)),
        ]

    def _store(self) -> list[Metric]:
        store = self._context.sessions.store
        commits = store.database.writer.transactions.committed
        return [
            _counter("bullpen_events_appended_total", "Events stored.", _one(store.appended_events)),
            _counter("bullpen_commits_total", "Transactions committed.", _one(commits)),
            _gauge("bullpen_storage_full", "Whether the disk has no room.", _one(store.full)),
            _gauge("bullpen_database_up", "Whether the database answers.", _one(not store.database.unreachable)),
        ]

    def _process(self) -> list[Metric]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        files = len(os.listdir("/proc/self/fd"))
        return [
            _gauge("bullpen_build_info", "The version that runs.", _by("version", {__version__: 1})),
            _counter("process_cpu_seconds_total", "CPU time.", _one(usage.ru_utime + usage.ru_stime)),
            _gauge("process_resident_memory_bytes", "Memory in use.", _one(_resident())),
            _gauge("process_open_fds", "Open files and sockets.", _one(files)),
        ]


def _gauge(name: str, help: str, samples: Samples) -> Metric:
    return Metric(name, "gauge", help, samples)


def _counter(name: str, help: str, samples: Samples) -> Metric:
    return Metric(name, "counter", help, samples)


def _one(value: float) -> Samples:
    return {(): value}


def _by(label: str, values: Mapping[str, float]) -> Samples:
    return {((label, key),): value for key, value in sorted(values.items())}


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _lines(figure: Metric) -> str:
    head = f"# HELP {figure.name} {figure.help}\n# TYPE {figure.name} {figure.kind}\n"
    return head + "".join(
        f"{figure.name}{_labels(labels)} {float(value):.15g}\n" for labels, value in figure.samples.items()
    )


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inside}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
