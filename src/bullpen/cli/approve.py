"""`bullpen approve`: answers what agents ask leave for."""

from typing import Annotated, Any

import typer

from ..client import Client, Permission
from ..domain.errors import BullpenError, Conflict, Invalid, NotFound
from ..wire.json import encode
from .answer import open_questions
from .find import SessionMatch, find
from .output import print_json
from .text import printable, short
from .verb import AsJson, Target, new_app, with_client

app = new_app()


@app.command()
def approve(
    target: Target,
    *,
    always: Annotated[bool, typer.Option(help="Allow it for good, where the agent offers that.")] = False,
    deny: Annotated[bool, typer.Option(help="Refuse it.")] = False,
    option: Annotated[str | None, typer.Option(help="The option to choose, by id or name.")] = None,
    list_only: Annotated[bool, typer.Option("--list", "-l", help="Only show what is asked.")] = False,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Answer all there are.")] = False,
    json: AsJson = False,
) -> None:
    """Allow what an agent asks leave for, or refuse it.

    \b
    Examples:
      bullpen approve my-session --list
      bullpen approve my-session
      bullpen approve my-session --deny
    """
    kind = _kind(always, deny)

    async def work(client: Client) -> list[Permission]:
        found = await find(client, target)
        waiting = await client.permissions(found.session.id)
        if found.worker is not None:
            waiting = [each for each in waiting if each.worker_id == found.worker.id]
        if list_only:
            return waiting
        if not waiting:
            raise await _nothing_to_allow(client, found)
        if len(waiting) > 1 and not everything:
            raise Conflict(
                f"{found.name} asks {len(waiting)} things; see them with --list, answer with --all"
            )
        chosen = [(each, choose(each.options, kind, option)) for each in waiting]
        for permission, option_id in chosen:
            await client.answer_permission(found.session.id, permission.id, option_id)
        return waiting

    answered = with_client(work)
    if json:
        print_json({"permissions": answered})
        return
    for permission in answered:
        if list_only:
            print(f"asks: {describe(permission)}")
        else:
            print(f"{'refused' if deny else 'allowed'}: {permission.role}: {what(permission.tool_call)}")


def choose(options: list[Any], kind: str, wanted: str | None) -> str:
    """The id of the option meant: by id or name, else by its kind, once before always."""
    offered = [each for each in options if isinstance(each, dict) and isinstance(each.get("optionId"), str)]
    if wanted is not None:
        for each in offered:
            if wanted in (each["optionId"], each.get("name")):
                return str(each["optionId"])
        names = ", ".join(printable(str(each["optionId"])) for each in offered)
        raise Invalid(f"there is no option {wanted}; there are {names}")
    kinds = (kind,) if kind.endswith("_always") else (kind, kind.replace("_once", "_always"))
    for each_kind in kinds:
        for each in offered:
            if each.get("kind") == each_kind:
                return str(each["optionId"])
    raise Conflict("the agent offers no such answer; see the options with --list, choose with --option")


def describe(permission: Permission) -> str:
    """What is asked, exactly, and the answers there are."""
    names = [str(each.get("optionId")) for each in permission.options if isinstance(each, dict)]
    return f"{permission.role}: {what(permission.tool_call)} [{printable(', '.join(names))}]"


def what(call: dict[str, Any]) -> str:
    """A tool call in a line: its title, and what it was given where the title does not say just that."""
    title = str(call.get("title") or call.get("kind") or call.get("toolCallId") or "something")
    given = call.get("rawInput")
    said = not given or (isinstance(given, dict) and all(value == title for value in given.values()))
    return printable(title if said else f"{title} {encode(given).decode()}")


async def _nothing_to_allow(client: Client, found: SessionMatch) -> BullpenError:
    questions = await open_questions(client, found)
    if not questions:
        return NotFound(f"{found.name} asks nothing")
    asked = printable(questions[0].message)
    how = f"answer it with: bullpen answer {short(found.session.id)}"
    return Conflict(f"{found.name} asks a question, not for leave: {asked}; {how}")


def _kind(always: bool, deny: bool) -> str:
    return f"{'reject' if deny else 'allow'}_{'always' if always else 'once'}"
