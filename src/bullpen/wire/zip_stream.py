"""A zip file on its way out: made while it is sent, the same bytes for the same content."""

import io
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # so that when it was made does not show


class _Sink(io.RawIOBase):
    """Keeps what is written until it is taken; nobody can go back in it."""

    def __init__(self) -> None:
        self._data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]
        self._data += data
        return len(data)

    def take(self) -> bytes:
        data = bytes(self._data)
        self._data.clear()
        return data


class ZipStream:
    """Members in the order they are begun; what is ready is taken from time to time."""

    def __init__(self) -> None:
        self._sink = _Sink()
        self._zip = ZipFile(self._sink, "w", ZIP_DEFLATED)

    def begin(self, name: str) -> None:
        self.end_member()
        info = ZipInfo(name, _LONG_AGO)
        info.compress_type = ZIP_DEFLATED
        info.external_attr = 0o600 << 16
        self._member = self._zip.open(info, "w", force_zip64=True)

    def write(self, data: bytes) -> bytes:
        """Adds to the member that was begun; returns what can be sent."""
        self._member.write(data)
        return self._sink.take()

    def end_member(self) -> None:
        if member := getattr(self, "_member", None):
            member.close()

    def close(self) -> bytes:
        """The rest of the file."""
        self.end_member()
        self._zip.close()
        return self._sink.take()
