"""The environment of an agent: what any program needs, what its definition lists, and nothing of ours."""

from collections.abc import Mapping

from ..domain.agents import AgentDefinition

COMMON = frozenset(
    {
        "HOME",
        "PATH",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TERM",
        "COLORTERM",
        "TMPDIR",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
    }
)
COMMON_PREFIXES = ("LC_", "XDG_")

# Our own secrets, and the traces of an outer agent, which make an inner one believe it runs inside it.
NEVER = frozenset({"CLAUDECODE"})
NEVER_PREFIXES = ("BULLPEN_", "CLAUDE_CODE_")


def agent_environment(definition: AgentDefinition, env: Mapping[str, str]) -> dict[str, str]:
    """What an agent is given of the server's environment; values the definition sets come last."""
    inherited = {name: value for name, value in env.items() if _passes(name, definition)}
    return {"TERM": "xterm-256color", **inherited, **definition.env}


def _passes(name: str, definition: AgentDefinition) -> bool:
    if name in NEVER or name.startswith(NEVER_PREFIXES):
        return False
    return name in COMMON or name.startswith(COMMON_PREFIXES) or name in definition.pass_env
