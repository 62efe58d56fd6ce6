"""What a server answers to one request, read while it arrives."""

import asyncio
from collections.abc import AsyncIterator

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

_PIECE = 64 * 1024
_LONGEST_HEAD = 64 * 1024
_FINAL = 200  # below it are interim answers: the real one follows


class BrokenConnection(Exception):
    """The connection broke or spoke no HTTP; the request may have had its effect."""


class BodyTooLong(Exception):
    """A body is longer than its reader takes."""


class HttpResponse:
    """Status and headers are there after `begin`; header names are in lower case."""

    def __init__(self, reader: asyncio.StreamReader, silence: float) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._reader = reader
        self._silence = silence  # seconds without a byte after which it is given up
        self._parser = HttpResponseParser(self)
        self._body: list[bytes] = []
        self._begun = False
        self._complete = False
        self._stays_open = False
        self._excess = False  # more came than was asked for

    @property
    def is_error(self) -> bool:
        return self.status >= 400

    @property
    def leaves_connection_usable(self) -> bool:
        """Whether the connection stands exactly behind this answer and stays open."""
        return self._complete and self._stays_open and not self._excess

    async def begin(self) -> None:
        """Reads the head."""
        read = 0
        while not self._begun:
            if read > _LONGEST_HEAD:
                raise BrokenConnection("the head of the answer has no end")
            read += await self._feed()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        while True:
            body, self._body = self._body, []
            for piece in body:
                yield piece
            if self._complete and not self._body:
                return
            await self._feed()

    async def read(self, most: int) -> bytes:
        """The whole body."""
        body = bytearray()
        async for piece in self.pieces():
            body += piece
            if len(body) > most:
                raise BodyTooLong
        return bytes(body)

    async def _feed(self) -> int:
        try:
            async with asyncio.timeout(self._silence):
                data = await self._reader.read(_PIECE)
            if data:
                self._parser.feed_data(data)
            else:
                self._end_with_connection()
        except (OSError, HttpParserError, HttpParserUpgrade) as error:  # a timeout is an OSError
            raise BrokenConnection(str(error) or "no answer in time") from None
        return len(data)

    def _end_with_connection(self) -> None:
        """An answer that names no length ends where the connection does; any other was cut off."""
        chunked = "chunked" in self.headers.get("transfer-encoding", "")
        if not self._begun or chunked or "content-length" in self.headers:
            raise BrokenConnection("the connection was closed in the middle of an answer")
        self._complete = True

    # What the parser calls

    def on_message_begin(self) -> None:
        self._excess = self._excess or self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._complete:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if not self._complete and self._parser.get_status_code() >= _FINAL:
            self.status = self._parser.get_status_code()
            self._begun = True
        elif not self._complete:
            self.headers.clear()

    def on_body(self, piece: bytes) -> None:
        if not self._complete:
            self._body.append(piece)

    def on_message_complete(self) -> None:
        if self._begun and not self._complete:
            self._complete = True
            self._stays_open = self._parser.should_keep_alive()  # the parser forgets it afterwards
