"""Where our own words go: readable on a terminal, JSON in a file that rotates, secrets in neither."""

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

ESCAPED = "an exception escaped"  # from a callback, a thread or a task that is not awaited: always a mistake
FILE_SIZE = 10 << 20
FILES = 5
REPEATS_A_MINUTE = 20  # warnings and errors with the same words that a log takes
LONGEST_WORDS = 200  # characters by which they are compared
NOISY = ("uvicorn", "uvicorn.error", "uvicorn.access", "websockets", "asyncio")


def configure(level: str, directory: Path, hidden: tuple[str, ...] = ()) -> None:
    """Sends structlog and the libraries' logging to stderr and to `directory/server.log`.

    `hidden` are secrets that cannot be known by their form.
    """
    redaction.also(hidden)
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
    plain = structlog.dev.plain_traceback  # a pretty one shows the values of variables
    pretty = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)
    root = logging.getLogger()
    root.handlers = [
        _handler(logging.StreamHandler(sys.stderr), pretty, shared),
        _handler(PrivateFile(directory / "server.log"), structlog.processors.JSONRenderer(), shared),
    ]
    logging.raiseExceptions = False  # it would print an entry it cannot format as it is, secrets and all
    set_level(level)
    for name in NOISY:
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
    """How much is logged from now on."""
    logging.getLogger().setLevel(level.upper())


def level() -> str:
    return logging.getLevelName(logging.getLogger().level).lower()


class PrivateFile(RotatingFileHandler):
    """A log only its owner can read, in a directory made when missing; a planted link is not followed."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(path, maxBytes=FILE_SIZE, backupCount=FILES, encoding="utf-8", delay=True)

    def _open(self) -> Any:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.baseFilename, flags, 0o600)
        return os.fdopen(descriptor, "a", encoding=self.encoding)

    def handleError(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"cannot write {self.baseFilename}: {sys.exc_info()[1]}\n")


class RepeatLimit(logging.Filter):
    """Drops warnings and errors that repeat the same words too often, and later writes how many.

    So a client that causes one again and again does not push older lines out of the rotated files.
    """

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__()
        self._handler = handler
        self._minute = 0
        self._repeats: Counter[str] = Counter()  # by the words

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or record.name == __name__:
            return True
        self._summarise()
        words = _words(record)
        self._repeats[words] += 1
        return self._repeats[words] <= REPEATS_A_MINUTE

    def _summarise(self) -> None:
        minute = int(clock.monotonic() // 60)
        if minute == self._minute:
            return
        self._minute, repeats = minute, self._repeats
        self._repeats = Counter()
        for words, count in repeats.items():
            if count > REPEATS_A_MINUTE:
                self._handler.handle(_summary(words, count - REPEATS_A_MINUTE))


def _words(record: logging.LogRecord) -> str:
    """Return the words of a record: structlog's event, or the text before its arguments are filled in."""
    event = record.msg.get("event") if isinstance(record.msg, dict) else record.msg
    return str(event)[:LONGEST_WORDS]


def _summary(words: str, left_out: int) -> logging.LogRecord:
    message = f"{left_out} more entries in a minute were left out: {words}"
    return logging.LogRecord(__name__, logging.WARNING, __file__, 0, message, None, None)


class LogRedaction:
    """The processor that puts ‹hidden› in the place of secrets, wherever in an entry they stand."""

    HIDDEN = "‹hidden›"
    NAMES = re.compile(r"(?i)^(.*[_-])?(authorization|bearer|cookie|password|secret|token)$")
    FORMS = re.compile(
        r"""bp[a-z]_[\w-]{8,}              # ours, see web/derived_secrets.py
        | (?<=bearer\ )\S+ | (?<=bullpen=)[^\s;,"']+ | (?<=\#code=)[\w-]+""",
        re.IGNORECASE | re.VERBOSE,
    )

    def __init__(self) -> None:
        self._literals: list[str] = []

    def also(self, hidden: tuple[str, ...]) -> None:
        """Hides these texts too."""
        self._literals += filter(None, hidden)

    def __call__(
        self, _logger: Any, _method: str, entry: structlog.types.EventDict
    ) -> structlog.types.EventDict:
        # What begins with an underscore is structlog's own and is not written.
        return {
            name: value if name.startswith("_") else self._value(name, value) for name, value in entry.items()
        }

    def _value(self, name: object, value: Any) -> Any:
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
        for literal in self._literals:
            text = text.replace(literal, self.HIDDEN)
        return self.FORMS.sub(self.HIDDEN, text)


redaction = LogRedaction()


def _is_secret(name: object) -> bool:
    return isinstance(name, str) and LogRedaction.NAMES.match(name) is not None


def _handler(
    handler: logging.Handler, renderer: structlog.types.Processor, shared: list[structlog.types.Processor]
) -> logging.Handler:
    last = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
    handler.addFilter(RepeatLimit(handler))
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=last))
    return handler
