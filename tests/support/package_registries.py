"""Serve one package on loopback as the registry of npm and the index of pip do."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME, VERSION = "hello-sandbox", "1.0.0"
WHEEL = f"hello_sandbox-{VERSION}-py3-none-any.whl"
TARBALL = f"{NAME}-{VERSION}.tgz"


def wheel() -> bytes:
    """Return a wheel with the module `hello_sandbox`, and a command `hello-sandbox`."""
    info = f"hello_sandbox-{VERSION}.dist-info"
    files = {
        "hello_sandbox.py": "def main() -> None:\n    print('hello from the wheel')\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{NAME} = hello_sandbox:main\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def tarball() -> bytes:
    """Return an npm package with a command, whose installation runs a script."""
    manifest = {
        "name": NAME,
        "version": VERSION,
        "bin": {NAME: "main.js"},
        "scripts": {"postinstall": "node -e \"require('fs').writeFileSync('installed', 'yes')\""},
    }
    main = "#!/usr/bin/env node\nconsole.log('hello from npm, installed:', require('fs')"
    files = {
        "package/package.json": json.dumps(manifest),
        "package/main.js": f"{main}.readFileSync(__dirname + '/installed', 'utf8'))\n",
    }
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return content.getvalue()


def npm_project(registry: str) -> dict[str, str]:
    """Return the files of a project that depends on the package, by name; its lock file is for `npm ci`."""
    wanted = {"name": "project", "version": "1.0.0", "dependencies": {NAME: VERSION}}
    digest = base64.b64encode(hashlib.sha512(tarball()).digest()).decode()
    package = {
        "version": VERSION,
        "integrity": f"sha512-{digest}",
        "hasInstallScript": True,
        "bin": {NAME: "main.js"},
    }
    package["resolved"] = f"{registry}/{TARBALL}"
    lock = {
        "name": "project",
        "version": "1.0.0",
        "lockfileVersion": 3,
        "packages": {"": wanted, f"node_modules/{NAME}": package},
    }
    return {"package.json": json.dumps(wanted), "package-lock.json": json.dumps(lock)}


@contextmanager
def package_registry() -> Iterator[str]:
    """Serve the package for the block; return the address."""
    links = f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()
    answers = {f"/simple/{NAME}/": links, f"/{WHEEL}": wheel(), f"/{TARBALL}": tarball()}

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answers.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "text/html" if "/simple/" in self.path else "application/zip")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
