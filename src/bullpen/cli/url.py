"""`bullpen url`: print a link that logs in a browser."""

import click

from .link import opens_elsewhere, print_qr_code, warn_if_local
from .output import print_json
from .verb import json_option, with_client


@click.command()
@click.option("--qr", is_flag=True, help="Also print a QR code for a phone.")
@json_option
def url(qr: bool, json: bool) -> None:
    """Print a link that logs in one browser. It works once, within ten minutes.

    \b
    Examples:
      bullpen url
      bullpen url --qr
    """
    code = with_client(lambda client: client.login_code())
    if json:
        print_json(code)
        return
    print(code.url)
    if qr and opens_elsewhere(code.url):
        print_qr_code(code.url)
    elif qr:
        warn_if_local(code.url)
