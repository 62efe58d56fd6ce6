"""`/api/sessions/{id}/ports`: the TCP ports on which programs of a session listen."""

import asyncio

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ...workers.ports import Port, find_ports
from ..context import ContextDep
from ..scopes import Scope, allow
from .answers import json_answer
from .shapes import Shape

router = APIRouter(prefix="/api/sessions/{session_id}/ports", tags=["ports"])


class PortShape(Shape):
    port: int
    address: str
    worker_id: str
    role: str
    pid: int
    command: str


class PortsShape(Shape):
    ports: list[PortShape]


# A share link shows the events of a session, not the programs on this machine.
@router.get("", response_model=PortsShape, dependencies=[Depends(allow(Scope.VIEW, guests=False))])
async def list_ports(session_id: str, context: ContextDep) -> Response:
    """The ports on which programs of a session listen now, lowest first."""
    session = await context.sessions.get(session_id)
    workers = session.snapshot.workers
    home_id = context.sessions.services.children.home_id
    found = await asyncio.to_thread(find_ports, home_id, workers.keys())
    return json_answer({"ports": [_port_json(each, workers[each.worker_id].role) for each in found]})


def _port_json(port: Port, role: str) -> dict[str, object]:
    """Return a port, with the role of its worker, as a JSON object."""
    return {
        "port": port.port,
        "address": port.address,
        "workerId": port.worker_id,
        "role": role,
        "pid": port.pid,
        "command": port.command,
    }
