"""`bullpen answer`: fills in the forms agents ask with."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ..client import Client, Question
from ..domain.errors import Invalid, NotFound
from .filling import fill_in
from .find import SessionMatch, find
from .form import content_of, fields_of
from .lines import StdinLines
from .output import print_json
from .text import printable
from .verb import AsJson, Target, new_app, with_client

app = new_app()


@app.command()
def answer(
    target: Target,
    *,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", "-f", metavar="NAME=VALUE", help="What to fill in; as often as you like."),
    ] = None,
    decline: Annotated[bool, typer.Option(help="Answer nothing, and say so.")] = False,
    list_only: Annotated[bool, typer.Option("--list", "-l", help="Only show what is asked.")] = False,
    json: AsJson = False,
) -> None:
    """Answer a question of an agent, the oldest first. In a terminal you are asked for what you leave out.

    \b
    Examples:
      bullpen answer my-session
      bullpen answer my-session --field port=8080 --field tls=yes
      bullpen answer my-session --decline
    """
    given = _given(field or [])

    async def work(client: Client) -> dict[str, Any] | list[Question]:
        found = await find(client, target)
        waiting = await open_questions(client, found)
        if list_only:
            return waiting
        if not waiting:
            raise NotFound(f"{found.name} asks no question")
        content = None if decline else await _content(waiting[0], given, asks=not json)
        action = "decline" if content is None else "accept"
        await client.answer_question(found.session.id, waiting[0].id, action, content)
        return {"question": waiting[0], "action": action, "content": content}

    try:
        done = with_client(work)
    except EOFError:
        raise typer.Abort from None
    if isinstance(done, list):
        _print_list(done, json)
    elif json:
        print_json(done)
    else:
        word = "answered" if done["action"] == "accept" else "declined"
        print(f"{word}: {printable(done['question'].message)}")


async def open_questions(client: Client, found: SessionMatch) -> list[Question]:
    """What a session asks, or one worker of it."""
    questions = await client.questions(found.session.id)
    worker = found.worker
    return questions if worker is None else [each for each in questions if each.worker_id == worker.id]


async def _content(question: Question, given: dict[str, str], asks: bool) -> dict[str, Any] | None:
    fields = fields_of(question.form)
    complete = bool(given) and all(field.name in given for field in fields)
    if asks and not complete and sys.stdin.isatty() and sys.stdout.isatty():
        return await fill_in(question, given, StdinLines().ask)
    return content_of(fields, given)


def _given(pairs: Sequence[str]) -> dict[str, str]:
    split = [pair.partition("=") for pair in pairs]
    for name, equals, _ in split:
        if not (name and equals):
            raise Invalid(f"--field wants NAME=VALUE, not {name}")
    return {name: value for name, _, value in split}


def _print_list(questions: list[Question], json: bool) -> None:
    if json:
        print_json({"questions": questions})
        return
    for question in questions:
        print(f"asks: {question.role}: {printable(question.message)}")
        if question.url:
            print(f"  {printable(question.url)}")
        for field in fields_of(question.form):
            optional = "" if field.required else "; may be left out"
            print(f"  {printable(field.name)}: {field.takes}{optional}")
