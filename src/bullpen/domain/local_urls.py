"""Check the URL of a web page that a program on the machine of the server serves."""

from urllib.parse import urlsplit

from .errors import Invalid

HOSTS = ("localhost", "127.0.0.1", "::1")
MAX_URL_LENGTH = 2000


def check_local_url(text: str) -> str:
    """Return the URL with its port, or raise Invalid if it is not a page of this machine."""
    try:
        url = urlsplit(text)
        port = url.port or 80
    except ValueError:
        raise Invalid(f"this is not a URL: {text[:100]}") from None
    if url.scheme != "http" or url.hostname not in HOSTS or "@" in url.netloc:
        raise Invalid(
            f"a web worker shows a page of this machine, such as http://localhost:5173/, not {text[:100]}"
        )
    if len(text) > MAX_URL_LENGTH or not text.isprintable() or " " in text:
        raise Invalid(f"a URL has at most {MAX_URL_LENGTH} printable characters and no space")
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    return url._replace(netloc=f"{host}:{port}", path=url.path or "/").geturl()
