"""`bullpen share`: create a link that shows one session."""

from typing import Annotated

import typer

from ..client import Client, Share
from .find import find_session
from .output import print_json
from .token import parse_duration
from .verb import AsJson, SessionName, new_app, with_client

app = new_app()


@app.command()
def share(
    session: SessionName,
    expires: Annotated[str, typer.Option(metavar="SPAN", help="Expires after 12h, 7d …")] = "7d",
    json: AsJson = False,
) -> None:
    """Create a link with which others can watch one session for a limited time, and do nothing else.

    List and revoke links with: bullpen token list, bullpen token revoke.

    \b
    Examples:
      bullpen share my-session --expires 12h
    """
    expires_in = parse_duration(expires)

    async def work(client: Client) -> Share:
        return await client.share((await find_session(client, session)).id, expires_in=expires_in)

    made = with_client(work)
    if json:
        print_json(made)
    else:
        print(f"this link shows the session for {expires}; it is printed only now:\n{made.url}")
