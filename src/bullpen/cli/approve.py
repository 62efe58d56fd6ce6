"""`bullpen approve`: allow or refuse the permissions that agents request."""

import click

from ..client import Client, Permission, PermissionOption, ToolCall
from ..domain.errors import BullpenError, Conflict, Invalid, NotFound
from ..wire.json import encode
from .answer import open_questions
from .find import SessionMatch, find
from .output import print_json
from .text import printable, short
from .verb import json_option, target_argument, with_client


@click.command()
@target_argument
@click.option("--always", is_flag=True, help="Allow it always, if the agent offers that.")
@click.option("--deny", is_flag=True, help="Refuse it.")
@click.option("--option", help="The option to choose, by id or name.")
@click.option("--list", "-l", "list_only", is_flag=True, help="Only list the requests.")
@click.option("--all", "-a", "everything", is_flag=True, help="Answer all requests.")
@json_option
def approve(
    target: str, always: bool, deny: bool, option: str | None, list_only: bool, everything: bool, json: bool
) -> None:
    """Allow or refuse a permission that an agent requests.

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
            raise await _no_request_error(client, found)
        if len(waiting) > 1 and not everything:
            raise Conflict(
                f"{found.name} requests {len(waiting)} permissions; see --list, or answer with --all"
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
            verb = "refused" if deny else "allowed"
            print(f"{verb}: {permission.role}: {describe_call(permission.tool_call)}")


def choose(options: list[PermissionOption], kind: str, option: str | None) -> str:
    """Return the id of the option that `option` names, else of the first option of a kind.

    To reject for ever may take the place of rejecting once, but to allow always never that of allowing once.
    Raise Invalid for an unknown option, and Conflict if the agent offers none of the kind.
    """
    offered = [each for each in options if each.option_id]
    names = ", ".join(printable(each.option_id) for each in offered)
    if option is not None:
        for each in offered:
            if option in (each.option_id, each.name):
                return each.option_id
        raise Invalid(f"there is no option {option}; the options are {names}")
    kinds = ("reject_once", "reject_always") if kind == "reject_once" else (kind,)
    for each_kind in kinds:
        for each in offered:
            if each.kind == each_kind:
                return each.option_id
    raise Conflict(f"the agent does not offer to {kind.replace('_', ' ')}; choose one with --option: {names}")


def describe(permission: Permission) -> str:
    """Return a line with the requested tool call and the ids of the options."""
    names = [each.option_id for each in permission.options]
    return f"{permission.role}: {describe_call(permission.tool_call)} [{printable(', '.join(names))}]"


def describe_call(call: ToolCall) -> str:
    """Return a tool call in one line: its title, and its input unless that repeats the title."""
    title = call.title or call.kind or call.tool_call_id or "something"
    raw = call.raw_input
    repeats = not raw or (isinstance(raw, dict) and all(value == title for value in raw.values()))
    return printable(title if repeats else f"{title} {encode(raw).decode()}")


async def _no_request_error(client: Client, found: SessionMatch) -> BullpenError:
    """Return the error for a session that requests no permission but may ask a question."""
    questions = await open_questions(client, found)
    if not questions:
        return NotFound(f"{found.name} requests no permission")
    message = printable(questions[0].message)
    how = f"answer it with: bullpen answer {short(found.session.id)}"
    return Conflict(f"{found.name} asks a question, not for a permission: {message}; {how}")


def _kind(always: bool, deny: bool) -> str:
    """Return the kind of the option to choose, as ACP names it."""
    return f"{'reject' if deny else 'allow'}_{'always' if always else 'once'}"
