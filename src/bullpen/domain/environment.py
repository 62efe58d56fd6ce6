"""Select which environment variables a program started by Bullpen inherits: the common ones, no secrets."""

from collections.abc import Collection, Mapping

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
# Also inherited by programs that a user runs: a shell, a setup command.
PERSONAL = frozenset({"SSH_AUTH_SOCK", "DISPLAY"})

# Secrets of Bullpen, and variables of an outer agent, which would make an inner agent believe it is nested.
NEVER = frozenset({"CLAUDECODE"})
NEVER_PREFIXES = ("BULLPEN_", "CLAUDE_CODE_")


def inherited_environment(env: Mapping[str, str], extra: Collection[str] = ()) -> dict[str, str]:
    """Return the variables of `env` that a program inherits. `extra` names further allowed ones."""
    return {name: value for name, value in env.items() if _is_inherited(name, extra)}


def _is_inherited(name: str, extra: Collection[str]) -> bool:
    """Return whether a program inherits the variable."""
    if name in NEVER or name.startswith(NEVER_PREFIXES):
        return False
    return name in COMMON or name.startswith(COMMON_PREFIXES) or name in extra
