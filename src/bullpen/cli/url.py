"""`bullpen url`: print a link that logs in a browser."""

from typing import Annotated

import typer

from .output import print_json
from .verb import AsJson, new_app, with_client

app = new_app()


@app.command()
def url(
    qr: Annotated[bool, typer.Option("--qr", help="Also print a QR code for a phone.")] = False,
    json: AsJson = False,
) -> None:
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
    if qr:
        import segno  # noqa: PLC0415

        segno.make(code.url, micro=False).terminal(compact=True)
