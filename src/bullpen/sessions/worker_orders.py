"""Complete the order for a worker, and refuse it if its program is not installed."""

from msgspec.structs import replace

from ..domain.agents import AgentDefinition
from ..domain.commands import AddWorker
from ..domain.errors import Invalid, NotFound
from ..workers.worker_services import WorkerServices


def complete_order(
    order: AddWorker, services: WorkerServices, repo_id: str | None = None, *, must_be_installed: bool = True
) -> AddWorker:
    """Return an order for an agent with its id, kind and name filled in; return any other order unchanged.

    Without an agent id, the default agent of the repository `repo_id` is used. Raise Invalid if the agent is
    not defined, and Conflict if it (unless `must_be_installed` is false) or a command is not installed.
    """
    if order.command:
        services.require_program(order.command[0], order.workspace, repo_id)
    if order.type != "agent":
        return order
    agent_id = order.agent_id or services.default_agent(repo_id)
    definition = require_agent(services, agent_id, must_be_installed=must_be_installed)
    return replace(
        order, name=order.name or definition.name, agent_id=definition.id, agent_kind=definition.kind
    )


def require_agent(
    services: WorkerServices, agent_id: str, *, must_be_installed: bool = True
) -> AgentDefinition:
    """Return the definition of an agent, or raise Invalid if the agent is not defined.

    Raise Conflict if the agent is not installed, unless `must_be_installed` is false.
    """
    try:
        return services.installed_agent(agent_id) if must_be_installed else services.agents.get(agent_id)
    except NotFound as error:
        raise Invalid(str(error)) from None
