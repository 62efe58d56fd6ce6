"""Where our own words go: readable on a terminal, JSON in a file that rotates."""

import logging
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

import structlog

FILE_SIZE = 10 << 20
FILES = 5


def configure(level: str, directory: Path) -> None:
    """Sends structlog and the libraries' logging to stderr and to `directory/server.log`."""
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    pretty = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    lines = structlog.processors.JSONRenderer()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = RotatingFileHandler(directory / "server.log", maxBytes=FILE_SIZE, backupCount=FILES, delay=True)
    root = logging.getLogger()
    root.handlers = [
        _handler(logging.StreamHandler(sys.stderr), pretty, shared),
        _handler(file, lines, shared),
    ]
    root.setLevel(level.upper())
    for noisy in ("uvicorn", "uvicorn.error", "uvicorn.access", "websockets", "httpx", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def _handler(
    handler: logging.Handler, renderer: structlog.types.Processor, shared: list[structlog.types.Processor]
) -> logging.Handler:
    last = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=last))
    return handler
