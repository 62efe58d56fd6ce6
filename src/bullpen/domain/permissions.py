"""Answer open permissions and questions. The first answer counts; a second one raises Conflict."""

from typing import Any

from msgspec.structs import replace

from .conversation import Permission, Question
from .conversation_state import OpenPermission
from .errors import Conflict, Invalid, NotFound
from .forms import check_answer
from .snapshot import Snapshot

ACTIONS = {"accept": "accepted", "decline": "declined", "cancel": "cancelled"}


def answer_permission(
    snapshot: Snapshot, permission_id: str, option_id: str, by: str
) -> tuple[str, Permission]:
    """Return the id of the worker that asked and the fact with the chosen option.

    Raise Conflict if the permission was answered before, NotFound if it does not exist.
    """
    worker_id, open = find_permission(snapshot, permission_id)
    _check_option(open, option_id)
    return worker_id, replace(open.fact, status="selected", option_id=option_id, by=by)


def find_permission(snapshot: Snapshot, permission_id: str) -> tuple[str, OpenPermission]:
    """Return an open permission and the id of the worker that asked for it; raise if it is not open."""
    for worker_id, conversation in snapshot.conversations.items():
        if open := conversation.permissions.get(permission_id):
            return worker_id, open
    raise _not_open_error(snapshot, "permission", permission_id)


def answer_question(
    snapshot: Snapshot, question_id: str, action: str, content: dict[str, Any] | None, by: str
) -> tuple[str, Question]:
    """Return the id of the worker that asked and the fact with the answer.

    Raise NotFound or Conflict if the question is not open, Invalid if the content does not fit its form.
    """
    if action not in ACTIONS:
        raise Invalid(f"a question is answered with one of {', '.join(ACTIONS)}, not {action}")
    for worker_id, conversation in snapshot.conversations.items():
        if open := conversation.questions.get(question_id):
            if action == "accept":
                check_answer(open.fact.schema, content or {})
            answer = content if action == "accept" else None
            return worker_id, replace(open.fact, status=ACTIONS[action], answer=answer, by=by)
    raise _not_open_error(snapshot, "question", question_id)


def _check_option(open: OpenPermission, option_id: str) -> None:
    """Raise Invalid if the permission has no such option."""
    known = [option.get("optionId") for option in open.fact.options if isinstance(option, dict)]
    if option_id not in known:
        raise Invalid(f"the options are {', '.join(map(str, known)) or 'none'}, not {option_id}")


def _not_open_error(snapshot: Snapshot, what: str, id: str) -> Conflict | NotFound:
    """Return the error for a request that is not open: Conflict if it was answered, else NotFound."""
    if id in snapshot.settled:
        return Conflict(f"the {what} was answered before")
    return NotFound(f"no open {what} {id}")
