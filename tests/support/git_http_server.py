"""A web server from which git clones a repository over HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from support.repositories import Repo


class GitHttpServer(ThreadingHTTPServer):
    """Serves the files of a bare repository. While `held`, requests for its objects get no answer."""

    daemon_threads = True

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(directory)))
        self.released = threading.Event()
        self.asked_for_objects = threading.Event()
        self.released.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def hold(self) -> None:
        self.released.clear()


class _Handler(SimpleHTTPRequestHandler):
    server: GitHttpServer

    def do_GET(self) -> None:
        if self.path.startswith("/private"):
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if "/objects/" in self.path:
            self.server.asked_for_objects.set()
            self.server.released.wait(60)
        with suppress(ConnectionError):  # a clone was cancelled
            super().do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def git_http_server(directory: Path) -> Iterator[GitHttpServer]:
    """Serve a directory with the bare repository `project.git`, which has one commit."""
    repo = Repo(directory / "source")
    repo.git("clone", "-q", "--bare", str(repo.path), str(directory / "project.git"))
    repo.git("update-server-info", cwd=directory / "project.git")
    with GitHttpServer(directory) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()
