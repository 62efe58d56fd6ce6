"""`/api/sessions/{id}/export`: download a session as zip, JSON lines, Markdown or asciicast."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response, StreamingResponse

from ...sessions.exporting import MEDIA, Format, SessionExport
from ...wire.redaction import Redaction
from ..context import ContextDep
from ..errors import own_errors
from ..scopes import Scope, allow

router = APIRouter(prefix="/api/sessions/{session_id}/export", tags=["recordings"])


@router.get(
    "",
    response_class=Response,
    responses=own_errors("conflict"),
    dependencies=[Depends(allow(Scope.VIEW))],
)
async def export(
    session_id: str,
    context: ContextDep,
    format: Format = "zip",
    redact: Annotated[bool, Query(description="cover texts that match the patterns of the settings")] = False,
    worker: Annotated[str | None, Query(description="the terminal for a cast")] = None,
) -> Response:
    """Stream the session as a file in this format."""
    session = await context.sessions.get(session_id)
    redaction = Redaction(context.config.redact if redact else ())
    made = SessionExport(session.snapshot, context.sessions.services, redaction)
    media, extension = MEDIA[format]
    headers = {"Content-Disposition": f'attachment; filename="{session.id}.{extension}"'}
    return StreamingResponse(made.stream(format, worker), headers=headers, media_type=media)
