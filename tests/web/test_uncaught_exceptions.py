"""An uncaught exception of a callback, task or thread is logged, and fails the test that caused it."""

import asyncio
import gc
from pathlib import Path
from threading import Thread, excepthook

import pytest
from structlog.testing import capture_logs

from bullpen import logs
from support.internal_errors import find_internal_error
from support.server import Server


class UncaughtError(Exception):
    """Raised in a callback, task or thread, where no caller catches it."""


def raise_uncaught() -> None:
    raise UncaughtError


async def raise_uncaught_in_task() -> None:
    raise_uncaught()


@pytest.fixture
async def loop(monkeypatch: pytest.MonkeyPatch) -> asyncio.AbstractEventLoop:
    monkeypatch.setattr("threading.excepthook", excepthook)  # restored afterwards
    loop = asyncio.get_running_loop()
    logs.report_escapes(loop)
    return loop


async def test_an_exception_of_a_callback_is_logged(loop: asyncio.AbstractEventLoop) -> None:
    with capture_logs() as logged:
        loop.call_soon(raise_uncaught)
        await asyncio.sleep(0)
    assert [(each["event"], type(each["exc_info"])) for each in logged] == [(logs.ESCAPED, UncaughtError)]


async def test_an_exception_of_a_task_that_is_not_awaited_is_logged(loop: asyncio.AbstractEventLoop) -> None:
    with capture_logs() as logged:
        task = loop.create_task(raise_uncaught_in_task())
        await asyncio.wait([task])
        del task
        gc.collect()
    assert [(each["event"], type(each["exc_info"])) for each in logged] == [(logs.ESCAPED, UncaughtError)]


async def test_an_exception_of_a_thread_is_logged(loop: asyncio.AbstractEventLoop) -> None:
    with capture_logs() as logged:
        thread = Thread(target=raise_uncaught)
        thread.start()
        thread.join()
    assert [(each["event"], type(each["exc_info"])) for each in logged] == [(logs.ESCAPED, UncaughtError)]


@pytest.mark.parametrize("sign", [logs.ESCAPED, "Traceback (most recent call last):", "internal error"])
async def test_an_internal_error_in_the_log_of_a_server_fails_its_test(
    tmp_path: Path, workspace: Path, sign: str
) -> None:
    server = Server(tmp_path / "home", workspace)
    server.home.with_suffix(".out").write_text(f"[error] {sign} of a test\n")
    with pytest.raises(AssertionError, match="the server logged a mistake"):
        await server.close()
    server.expect_mistake("of a test")
    await server.close()


def test_a_traceback_in_the_log_of_a_keeper_is_found(tmp_path: Path) -> None:
    (tmp_path / "keeper").mkdir()
    (tmp_path / "keeper" / "k.log").write_text("Traceback (most recent call last):\nOSError\n")
    assert find_internal_error("", tmp_path) == "Traceback (most recent call last):\nOSError"
    assert find_internal_error("", tmp_path, expected=("OSError",)) is None
