"""A server with TLS and a self-signed certificate."""

import ssl
import subprocess
from pathlib import Path

import httpx

from support.server import Server


class Certificate:
    """A self-signed certificate for the loopback addresses."""

    def __init__(self, directory: Path) -> None:
        self.certificate, self.key = directory / "cert.pem", directory / "key.pem"
        command = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bullpen "
            f"-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout {self.key} -out {self.certificate}"
        )
        subprocess.run(command.split(), check=True, capture_output=True, timeout=60)

    @property
    def settings(self) -> dict[str, str]:
        return {"BULLPEN_TLS_CERTIFICATE": str(self.certificate), "BULLPEN_TLS_KEY": str(self.key)}

    @property
    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.certificate)


class TlsServer(Server):
    """A server with TLS; its HTTP client verifies the certificate."""

    def __init__(self, home: Path, workspace: Path, certificate: Certificate) -> None:
        super().__init__(home, workspace, certificate.settings)
        self.context = certificate.context
        self.http = httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.token}"},
            verify=self.context,
            timeout=30,
            trust_env=False,
        )

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"
