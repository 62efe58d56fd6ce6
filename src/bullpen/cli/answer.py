"""`bullpen answer`: answer questions of agents by filling in their forms."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from ..client import Client, Question
from ..domain.errors import Invalid, NotFound
from ..domain.forms import form_fields
from .find import SessionMatch, find
from .form import form_content
from .form_filling import fill_in
from .output import print_json
from .stdin_lines import StdinLines
from .text import printable
from .verb import json_option, target_argument, with_client


@click.command()
@target_argument
@click.option(
    "--field", "-f", multiple=True, metavar="NAME=VALUE", help="The value of a field; may be repeated."
)
@click.option("--decline", is_flag=True, help="Decline to answer.")
@click.option("--list", "-l", "list_only", is_flag=True, help="Only list the questions.")
@json_option
def answer(target: str, field: tuple[str, ...], decline: bool, list_only: bool, json: bool) -> None:
    """Answer a question of an agent, the oldest first. In a terminal you are asked for what you leave out.

    \b
    Examples:
      bullpen answer my-session
      bullpen answer my-session --field port=8080 --field tls=yes
      bullpen answer my-session --decline
    """
    values = _field_values(field or [])

    async def work(client: Client) -> dict[str, Any] | list[Question]:
        found = await find(client, target)
        waiting = await open_questions(client, found)
        if list_only:
            return waiting
        if not waiting:
            raise NotFound(f"{found.name} asks no question")
        content = None if decline else await _content(waiting[0], values, interactive=not json)
        action = "decline" if content is None else "accept"
        await client.answer_question(found.session.id, waiting[0].id, action, content)
        return {"question": waiting[0], "action": action, "content": content}

    try:
        done = with_client(work)
    except EOFError:
        raise click.Abort from None
    if isinstance(done, list):
        _print_list(done, json)
    elif json:
        print_json(done)
    else:
        verb = "answered" if done["action"] == "accept" else "declined"
        print(f"{verb}: {printable(done['question'].message)}")


async def open_questions(client: Client, found: SessionMatch) -> list[Question]:
    """Return the open questions of a session, or of one of its workers."""
    questions = await client.questions(found.session.id)
    worker = found.worker
    return questions if worker is None else [each for each in questions if each.worker_id == worker.id]


async def _content(question: Question, values: dict[str, str], interactive: bool) -> dict[str, Any] | None:
    """Return the values of the form, typed by the user where they are missing; None to decline."""
    fields = form_fields(question.form)
    complete = bool(values) and all(field.name in values for field in fields)
    if interactive and not complete and sys.stdin.isatty() and sys.stdout.isatty():
        return await fill_in(question, values, StdinLines().ask)
    return form_content(fields, values)


def _field_values(pairs: Sequence[str]) -> dict[str, str]:
    """Return the texts of NAME=VALUE options by name; raise Invalid for one without a name or `=`."""
    split = [pair.partition("=") for pair in pairs]
    for name, equals, _ in split:
        if not (name and equals):
            raise Invalid(f"--field needs NAME=VALUE, not {name}")
    return {name: value for name, _, value in split}


def _print_list(questions: list[Question], json: bool) -> None:
    """Print questions with the fields of their forms."""
    if json:
        print_json({"questions": questions})
        return
    for question in questions:
        print(f"asks: {question.role}: {printable(question.message)}")
        if question.url:
            print(f"  {printable(question.url)}")
        for field in form_fields(question.form):
            optional = "" if field.required else "; may be left out"
            print(f"  {printable(field.name)}: {field.expected}{optional}")
