"""What a program we start inherits of our environment: what any program needs, and nothing of ours."""

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
PERSONAL = frozenset({"SSH_AUTH_SOCK", "DISPLAY"})  # more for what a person runs: a shell, a setup command

# Our own secrets, and the traces of an outer agent, which make an inner one believe it runs inside it.
NEVER = frozenset({"CLAUDECODE"})
NEVER_PREFIXES = ("BULLPEN_", "CLAUDE_CODE_")


def inherited(env: Mapping[str, str], more: Collection[str] = ()) -> dict[str, str]:
    """What passes of an environment; `more` are names that may, too."""
    return {name: value for name, value in env.items() if _passes(name, more)}


def _passes(name: str, more: Collection[str]) -> bool:
    if name in NEVER or name.startswith(NEVER_PREFIXES):
        return False
    return name in COMMON or name.startswith(COMMON_PREFIXES) or name in more
