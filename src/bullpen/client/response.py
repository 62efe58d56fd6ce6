"""Read the answer to one HTTP request while it arrives."""

import asyncio
from collections.abc import AsyncIterator

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

_READ_BYTES = 64 * 1024
_MAX_HEAD_BYTES = 64 * 1024
_FIRST_FINAL_STATUS = 200  # a lower status is an interim answer, and the final one follows


class BrokenConnection(Exception):
    """The connection broke or the answer is not HTTP. The request may have taken effect."""


class BodyTooLong(Exception):
    """The body is longer than its reader allows."""


class HttpResponse:
    """An answer of the server. `read_head` sets its status and headers, whose names are in lower case."""

    def __init__(self, reader: asyncio.StreamReader, stall_seconds: float) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._reader = reader
        self._stall_seconds = stall_seconds  # seconds without a byte until reading fails
        self._parser = HttpResponseParser(self)
        self._body: list[bytes] = []
        self._has_head = False
        self._complete = False
        self._keeps_alive = False
        self._has_excess = False  # the server sent more than one answer

    @property
    def is_error(self) -> bool:
        """Whether the status is 400 or higher."""
        return self.status >= 400

    @property
    def leaves_connection_usable(self) -> bool:
        """Whether another request can use the connection: it is open, and nothing follows this answer."""
        return self._complete and self._keeps_alive and not self._has_excess

    async def read_head(self) -> None:
        """Read the status and the headers, or raise BrokenConnection if they are too long."""
        read = 0
        while not self._has_head:
            if read > _MAX_HEAD_BYTES:
                raise BrokenConnection("the headers of the answer are too long")
            read += await self._feed()

    async def body_chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
        while True:
            body, self._body = self._body, []
            for chunk in body:
                yield chunk
            if self._complete and not self._body:
                return
            await self._feed()

    async def read(self, max_bytes: int) -> bytes:
        """Return the whole body; raise BodyTooLong if it has more than `max_bytes`."""
        body = bytearray()
        async for chunk in self.body_chunks():
            body += chunk
            if len(body) > max_bytes:
                raise BodyTooLong
        return bytes(body)

    async def _feed(self) -> int:
        """Read and parse the next bytes; return their number, 0 at the end, or raise BrokenConnection."""
        try:
            async with asyncio.timeout(self._stall_seconds):
                data = await self._reader.read(_READ_BYTES)
            if data:
                self._parser.feed_data(data)
            else:
                self._end_with_connection()
        except (OSError, HttpParserError, HttpParserUpgrade) as error:  # a timeout is an OSError
            raise BrokenConnection(str(error) or "no answer in time") from None
        return len(data)

    def _end_with_connection(self) -> None:
        """Complete an answer without a length, which ends with the connection; raise for any other answer."""
        chunked = "chunked" in self.headers.get("transfer-encoding", "")
        if not self._has_head or chunked or "content-length" in self.headers:
            raise BrokenConnection("the connection was closed in the middle of an answer")
        self._complete = True

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        """Note whether a second answer follows the first."""
        self._has_excess = self._has_excess or self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header."""
        if not self._complete:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Store the status; discard the headers of an interim answer."""
        if not self._complete and self._parser.get_status_code() >= _FIRST_FINAL_STATUS:
            self.status = self._parser.get_status_code()
            self._has_head = True
        elif not self._complete:
            self.headers.clear()

    def on_body(self, chunk: bytes) -> None:
        """Store a chunk of the body."""
        if not self._complete:
            self._body.append(chunk)

    def on_message_complete(self) -> None:
        """Note the end of the answer."""
        if self._has_head and not self._complete:
            self._complete = True
            self._keeps_alive = self._parser.should_keep_alive()  # only valid in this callback
