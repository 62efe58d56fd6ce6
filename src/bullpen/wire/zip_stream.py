"""Create a zip file while it is being sent; the same content gives the same bytes."""

import io
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # so that the bytes do not depend on the time of the export


class _Sink(io.RawIOBase):
    """A write-only file that keeps the written bytes until they are taken."""

    def __init__(self) -> None:
        self._data = bytearray()

    def writable(self) -> bool:
        """Return True, because `zipfile` asks."""
        return True

    def write(self, data: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]
        """Keep the data, and return its length."""
        self._data += data
        return len(data)

    def take_written(self) -> bytes:
        """Return the bytes written since the last call."""
        data = bytes(self._data)
        self._data.clear()
        return data


class ZipStream:
    """A zip file that is sent while its members are written one after another."""

    def __init__(self) -> None:
        self._sink = _Sink()
        self._zip = ZipFile(self._sink, "w", ZIP_DEFLATED)

    def begin(self, name: str) -> None:
        """End the current member of the zip file and begin the next."""
        self.end_member()
        info = ZipInfo(name, _FIXED_TIME)
        info.compress_type = ZIP_DEFLATED
        info.external_attr = 0o600 << 16
        self._member = self._zip.open(info, "w", force_zip64=True)

    def write(self, data: bytes) -> bytes:
        """Append to the current member; return the bytes that can be sent."""
        self._member.write(data)
        return self._sink.take_written()

    def end_member(self) -> None:
        """End the current member of the zip file, if any."""
        if member := getattr(self, "_member", None):
            member.close()

    def close(self) -> bytes:
        """End the zip file and return its last bytes."""
        self.end_member()
        self._zip.close()
        return self._sink.take_written()
