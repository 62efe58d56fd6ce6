"""`bullpen worker`: add, list, restart or end workers of a session."""

from functools import partial

import click

from ..client import Client, Session, Worker
from ..domain.errors import NotFound
from .command_line import VerbWithCommand
from .find import find, find_session
from .output import print_json
from .remedies import with_remedies
from .show import WORKER_COLUMNS, worker_row
from .table import print_table
from .text import short
from .verb import json_option, quiet_option, session_argument, with_client
from .verb_group import VerbGroup

worker = VerbGroup(help="Add, list, restart or end the workers of a session.")

worker_argument = click.argument("worker", metavar="WORKER", help="session/role, an id or its beginning.")


@worker.command(cls=VerbWithCommand)
@session_argument
@click.option("--type", default="terminal", help="The type: terminal, agent, diff, markdown, web.")
@click.option("--name", "-n", help="Its name.")
@click.option("--role", help="Its role, unique in the session.")
@click.option("--agent", help="The agent, for type agent.")
@click.option("--file", help="The file, for type markdown.")
@click.option("--url", help="The page of a local port, for type web.")
@json_option
@quiet_option
def add(
    session: str,
    type: str,
    name: str | None,
    role: str | None,
    agent: str | None,
    file: str | None,
    url: str | None,
    json: bool,
    quiet: bool,
    command: tuple[str, ...],
) -> None:
    """Start another worker in a session: a terminal with a shell or with the command after --, or an agent.

    \b
    Examples:
      bullpen worker add my-session
      bullpen worker add my-session --name build
      bullpen worker add my-session -- npm run dev
      bullpen worker add my-session --type web --url http://localhost:5173/
    """

    async def work(client: Client) -> Worker:
        found = await find_session(client, session)
        add = partial(client.add_worker, found.id, type, name=name, role=role, command=command)
        return await with_remedies(client, partial(add, agent_id=agent, file_path=file, url=url))

    _report(with_client(work), "started", json, quiet)


@worker.command()
@session_argument
@json_option
@quiet_option
def ls(session: str, json: bool, quiet: bool) -> None:
    """List the workers of a session."""
    workers = with_client(lambda client: find_session(client, session)).workers
    if json:
        print_json({"workers": workers})
    elif quiet:
        for worker in workers:
            print(worker.id)
    elif workers:
        print_table(WORKER_COLUMNS, [worker_row(worker) for worker in workers])
    else:
        print(f"no workers; start one with: bullpen worker add {session}")


@worker.command()
@worker_argument
@json_option
@quiet_option
def restart(worker: str, json: bool, quiet: bool) -> None:
    """Restart a worker that has ended or failed."""

    async def work(client: Client) -> Worker:
        session, found = await _find_worker(client, worker)
        return await client.restart_worker(session.id, found.id)

    _report(with_client(work), "restarted", json, quiet)


@worker.command()
@worker_argument
def rm(worker: str) -> None:
    """End a worker; its role can be used again."""

    async def work(client: Client) -> Worker:
        session, found = await _find_worker(client, worker)
        await client.end_worker(session.id, found.id)
        return found

    print(f"ended {with_client(work).role}")


async def _find_worker(client: Client, text: str) -> tuple[Session, Worker]:
    """Return the named worker and its session; raise NotFound if a session was named."""
    found = await find(client, text)
    if found.worker is None:
        raise NotFound(f"{text} is a session; name a worker of it as {text}/role")
    return found.session, found.worker


def _report(worker: Worker, verb: str, json: bool, quiet: bool) -> None:
    """Print a worker that was started or restarted."""
    if json:
        print_json(worker)
    elif quiet:
        print(worker.id)
    else:
        print(f"{verb} {worker.role}; {_advice(worker)} {short(worker.id)}")


def _advice(worker: Worker) -> str:
    """Return the command with which to use a worker, without its argument."""
    if worker.has_terminal:
        return "attach with: bullpen attach"
    return "talk with: bullpen chat" if worker.type == "agent" else "follow with: bullpen logs -f"
