"""How the certificate of an https server is checked."""

import ssl

from .discovery import Server


def context(server: Server) -> ssl.SSLContext:
    """Always strict. The authorities are read only for https: that takes longer than a whole request."""
    strict = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if server.url.startswith("https:"):
        strict.load_default_certs()
        if server.certificate is not None:
            strict.load_verify_locations(server.certificate)
    return strict
