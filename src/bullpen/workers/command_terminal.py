"""Run a command in a terminal in place of a shell: of a user, of an agent, or the login of an agent."""

from .children import ChildSpec
from .terminal import TerminalWorker
from .worker_services import user_environment


class CommandTerminal(TerminalWorker):
    """One run of a terminal that runs a command; a restart runs the same command again."""

    def _child_spec(self) -> ChildSpec:
        """Return the command to run; a command of an agent also gets the variables of that agent."""
        command = self.worker.command
        assert command is not None
        agents = self._services.agents
        agent_variables = agents.environment(agents.get(command.like_agent)) if command.like_agent else {}
        base = {**user_environment(), **agent_variables}
        environment = self._services.environment(self.worker, self._log.snapshot.repo_id, base, command.env)
        directory = self._services.working_directory(self.worker)
        return self._spec(command.argv, environment, directory)
