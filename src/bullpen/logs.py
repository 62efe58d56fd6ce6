"""Configure logging: readable on a terminal, JSON in a rotated private file, secrets in neither."""

import asyncio
import logging
import os
import re
import sys
import threading
from collections import Counter
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import structlog

from . import clock

log = structlog.get_logger()

ESCAPED = "an exception escaped"  # from a callback, a thread or a task that is not awaited: always a bug
MAX_FILE_BYTES = 10 << 20
BACKUP_FILES = 5
REPEATS_A_MINUTE = 20  # limit of warnings and errors with the same message
MAX_COMPARED_LENGTH = 200  # characters by which messages are compared
QUIET_LIBRARIES = ("uvicorn", "uvicorn.error", "uvicorn.access", "websockets", "asyncio")


def configure(level: str, directory: Path, hidden: tuple[str, ...] = ()) -> None:
    """Send the records of structlog and of libraries to stderr and to `directory/server.log`.

    `hidden` are secrets that cannot be recognized by their form.
    """
    redaction.add_literals(hidden)
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redaction,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    plain = structlog.dev.plain_traceback  # a formatted one shows the values of variables
    pretty = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)
    root = logging.getLogger()
    root.handlers = [
        _handler(logging.StreamHandler(sys.stderr), pretty, shared),
        _handler(PrivateFile(directory / "server.log"), structlog.processors.JSONRenderer(), shared),
    ]
    logging.raiseExceptions = False  # it would print a record that cannot be formatted without redaction
    set_level(level)
    for name in QUIET_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)


def report_escapes(loop: asyncio.AbstractEventLoop) -> None:
    """Log exceptions that escape from callbacks of the loop, tasks that are not awaited, and threads."""

    def from_loop(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        where = str(context.get("handle") or context.get("future") or context.get("transport") or "")
        log.error(ESCAPED, about=context["message"], where=where, exc_info=context.get("exception"))

    def from_thread(args: threading.ExceptHookArgs) -> None:
        name = args.thread.name if args.thread else ""
        log.error(ESCAPED, about="a thread ended", where=name, exc_info=args.exc_value)

    loop.set_exception_handler(from_loop)
    threading.excepthook = from_thread


def set_level(level: str) -> None:
    """Set the level from which records are logged."""
    logging.getLogger().setLevel(level.upper())


def level() -> str:
    """Return the level from which records are logged."""
    return logging.getLevelName(logging.getLogger().level).lower()


class PrivateFile(RotatingFileHandler):
    """A log file that only its owner can read; a symlink is not followed, a missing directory is created."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(
            path, maxBytes=MAX_FILE_BYTES, backupCount=BACKUP_FILES, encoding="utf-8", delay=True
        )

    def _open(self) -> Any:
        """Open the file for appending with mode 0600; refuse a symlink."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.baseFilename, flags, 0o600)
        return os.fdopen(descriptor, "a", encoding=self.encoding)

    def handleError(self, record: logging.LogRecord) -> None:
        """Write one line to stderr instead of a traceback when the file cannot be written."""
        sys.stderr.write(f"cannot write {self.baseFilename}: {sys.exc_info()[1]}\n")


class RepeatLimit(logging.Filter):
    """Drops warnings and errors that repeat the same message too often, and later logs how many.

    So a client that causes one again and again does not push older records out of the rotated files.
    """

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__()
        self._handler = handler
        self._minute = 0
        self._repeats: Counter[str] = Counter()  # by message

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record: not if its message was logged too often in this minute."""
        if record.levelno < logging.WARNING or record.name == __name__:
            return True
        self._summarise()
        message = _message(record)
        self._repeats[message] += 1
        return self._repeats[message] <= REPEATS_A_MINUTE

    def _summarise(self) -> None:
        """At the start of a minute, log how many records of the last one were dropped."""
        minute = int(clock.monotonic() // 60)
        if minute == self._minute:
            return
        self._minute, repeats = minute, self._repeats
        self._repeats = Counter()
        for message, count in repeats.items():
            if count > REPEATS_A_MINUTE:
                self._handler.handle(_summary(message, count - REPEATS_A_MINUTE))


def _message(record: logging.LogRecord) -> str:
    """Return the message of a record: structlog's event, or the text before its arguments are filled in."""
    event = record.msg.get("event") if isinstance(record.msg, dict) else record.msg
    return str(event)[:MAX_COMPARED_LENGTH]


def _summary(message: str, left_out: int) -> logging.LogRecord:
    """Return the record that says how often a message was dropped."""
    text = f"{left_out} more entries in a minute were left out: {message}"
    return logging.LogRecord(__name__, logging.WARNING, __file__, 0, text, None, None)


class LogRedaction:
    """The structlog processor that replaces secrets anywhere in a record by ‹hidden›."""

    HIDDEN = "‹hidden›"
    NAMES = re.compile(r"(?i)^(.*[_-])?(authorization|bearer|cookie|password|secret|token)$")
    FORMS = re.compile(
        r"""bp[a-z]_[\w-]{8,}              # made by web/derived_secrets.py
        | (?<=bearer\ )\S+ | (?<=bullpen=)[^\s;,"']+ | (?<=\#code=)[\w-]+""",
        re.IGNORECASE | re.VERBOSE,
    )

    def __init__(self) -> None:
        self._literals: list[str] = []

    def add_literals(self, hidden: tuple[str, ...]) -> None:
        """Also replace these texts in log records."""
        self._literals += filter(None, hidden)

    def __call__(
        self, _logger: Any, _method: str, entry: structlog.types.EventDict
    ) -> structlog.types.EventDict:
        # Names with a leading underscore belong to structlog and are not written.
        return {
            name: value if name.startswith("_") else self._value(name, value) for name, value in entry.items()
        }

    def _value(self, name: object, value: Any) -> Any:
        """Return a value of a record with secrets replaced; `name` is its field."""
        match value:
            case None | bool() | int() | float():
                return value
            case dict():
                return {key: self._value(key, each) for key, each in value.items()}
            case list() | tuple():
                return [self._value(name, each) for each in value]
            case str():
                return self.HIDDEN if _is_secret(name) else self.text(value)
            case _:
                return self.HIDDEN if _is_secret(name) else self.text(repr(value))

    def text(self, text: str) -> str:
        """Return the text with secrets replaced by ‹hidden›."""
        for literal in self._literals:
            text = text.replace(literal, self.HIDDEN)
        return self.FORMS.sub(self.HIDDEN, text)


redaction = LogRedaction()


def _is_secret(name: object) -> bool:
    """Return whether a field with this name holds a secret."""
    return isinstance(name, str) and LogRedaction.NAMES.match(name) is not None


def _handler(
    handler: logging.Handler, renderer: structlog.types.Processor, shared: list[structlog.types.Processor]
) -> logging.Handler:
    """Set the formatter and the repeat limit of a handler, and return it."""
    last = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
    handler.addFilter(RepeatLimit(handler))
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=last))
    return handler
