"""uvicorn's HTTP protocol, with one hole closed: a request target that names a host of its own."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class HttpProtocol(HttpToolsProtocol):
    """The host in an absolute-form target (`GET http://host/path`) is one more Host, for the gate to see."""

    def on_headers_complete(self) -> None:
        if not self.url.startswith(b"/"):
            self.headers.append((b"host", self.url))
        super().on_headers_complete()
