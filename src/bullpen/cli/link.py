"""Print a link as a QR code, and warn if no other device can open it."""

import sys
from urllib.parse import urlsplit

from ..domain.addresses import is_loopback

_ADVICE = """\
bullpen: only this machine can open this link. For a phone, start the server with a certificate:
  bullpen serve --host NAME --tls-certificate FILE --tls-key FILE
or behind a reverse proxy on this machine that has one:
  bullpen serve --allowed-hosts NAME --trusted-proxies 127.0.0.1"""


def opens_elsewhere(url: str) -> bool:
    """Return whether another device, such as a phone, may be able to open a link."""
    return not is_loopback(urlsplit(url).hostname or "")


def print_qr_code(url: str) -> None:
    """Print a link as a QR code for the camera of a phone."""
    import segno  # noqa: PLC0415  only a terminal needs it

    segno.make(url, micro=False).terminal(compact=True)


def warn_if_local(url: str) -> None:
    """Tell the user if only this machine can open a link, and how another device could."""
    if not opens_elsewhere(url):
        print(_ADVICE, file=sys.stderr)
