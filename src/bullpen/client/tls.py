"""How the certificate of an https server is checked."""

import ssl

from .discovery import ServerAddress


def context(server: ServerAddress) -> ssl.SSLContext | None:
    """Always strict; None when nothing is encrypted. Reading the authorities takes longer than a request."""
    if not server.url.startswith("https:"):
        return None
    strict = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    strict.load_default_certs()
    if server.certificate is not None:
        strict.load_verify_locations(server.certificate)
    return strict
