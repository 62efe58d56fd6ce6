"""`/metrics`: the text format of Prometheus, with values that follow the state of the server."""

import re

import pytest

from bullpen.web.metrics import Metric, text_format
from support.server import Server

session_loop = pytest.mark.asyncio(loop_scope="session")

# The part of the grammar of the format that the server uses.
LINE = re.compile(
    r"# (HELP|TYPE) [a-z_]+ .+"
    r'|[a-z_]+(\{[a-z_]+="([^"\\\n]|\\["\\n])*"\})? -?\d+(\.\d+)?(e[+-]\d+)?'
)


async def scrape(server: Server) -> dict[str, float]:
    answer = await server.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.text.endswith("\n")
    for line in answer.text.splitlines():
        assert LINE.fullmatch(line), line
    samples = [line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#")]
    assert len({name for name, _ in samples}) == len(samples)
    return {name: float(value) for name, value in samples}


@session_loop
async def test_metrics_change_with_sessions_workers_and_sockets(shared_server: Server) -> None:
    before = await scrape(shared_server)
    session = await shared_server.new_session()
    worker = await shared_server.new_terminal(session["id"])
    paths = [
        "/ws/dashboard",
        f"/ws/session/{session['id']}",
        f"/ws/session/{session['id']}/worker/{worker['id']}",
    ]
    async with (
        shared_server.socket(paths[0]),
        shared_server.socket(paths[1]),
        shared_server.socket(paths[2]) as ws,
    ):
        await ws.recv()
        during = await scrape(shared_server)

    def growth(name: str) -> float:
        return during[name] - before.get(name, 0)

    assert growth('bullpen_sessions{status="active"}') == 1
    assert growth('bullpen_workers{state="active"}') == 1
    assert growth("bullpen_events_appended_total") == 3  # start, spawning, ready
    assert growth("bullpen_commits_total") >= 3
    assert growth('bullpen_sockets{route="/ws/dashboard"}') == 1
    assert growth("bullpen_viewers") == 2
    assert growth("bullpen_bytes_out_total") > 100
    assert growth('bullpen_http_answers_total{status="201"}') == 2
    assert (during["bullpen_keeper_up"], during["bullpen_database_up"], during["bullpen_storage_full"]) == (
        1,
        1,
        0,
    )
    assert during["process_resident_memory_bytes"] > 1 << 20
    assert during["process_open_fds"] > 10


@session_loop
async def test_metrics_of_every_state_and_status_exist_from_the_start(shared_server: Server) -> None:
    metrics = await scrape(shared_server)
    for state in ("spawning", "active", "exited", "failed", "terminated"):
        assert f'bullpen_workers{{state="{state}"}}' in metrics
    for status in ("active", "completed", "cancelled", "error"):
        assert f'bullpen_sessions{{status="{status}"}}' in metrics


def test_labels_are_escaped() -> None:
    metric = Metric("x", "gauge", "Help.", {(("name", 'a"b\\c\nd'),): 1.5})
    assert text_format([metric]) == '# HELP x Help.\n# TYPE x gauge\nx{name="a\\"b\\\\c\\nd"} 1.5\n'
