"""`bullpen share`: create a link with which others can watch one session, and do nothing else."""

import click

from ..client import Client, Share
from .find import find_session
from .link import warn_if_local
from .output import print_json
from .token import parse_duration
from .verb import json_option, session_argument, with_client


@click.command()
@session_argument
@click.option("--expires", default="7d", metavar="SPAN", help="Expires after 12h, 7d …")
@json_option
def share(session: str, expires: str, json: bool) -> None:
    """Create a link with which others can watch one session for a limited time, and do nothing else.

    List and revoke links with: bullpen token ls, bullpen token revoke.

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
        warn_if_local(made.url)
