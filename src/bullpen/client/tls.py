"""Create the TLS context for https: it trusts the system's authorities and the server's own certificate."""

import ssl

from .discovery import ServerAddress


def ssl_context(server: ServerAddress) -> ssl.SSLContext | None:
    """Return a context that verifies the server; None for http, as loading the authorities is slow."""
    if not server.url.startswith("https:"):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    if server.certificate is not None:
        context.load_verify_locations(server.certificate)
    return context
