"""Load the settings of the server from flags, environment, config.toml and defaults, in that order."""

import difflib
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .domain.errors import Invalid
from .domain.limits import ResourceLimits
from .domain.rules import Rule
from .domain.sandbox import LEVELS, SandboxLevel
from .setting_values import (
    parse_amount,
    parse_argv,
    parse_level,
    parse_names,
    parse_number,
    parse_one_of,
    parse_optional_path,
    parse_path,
    parse_paths,
    parse_patterns,
    parse_rules,
    parse_size,
    parse_text,
    parse_web_address,
    parse_yes_or_no,
)


@dataclass(frozen=True)
class SettingDefinition:
    """One setting: its sources, its default, and the function that parses its value."""

    name: str
    env: str
    default: Callable[[Mapping[str, str]], Any]
    read: Callable[[Any], Any]
    help: str
    secret: bool = False


@dataclass(frozen=True)
class Config:
    """The settings of one server, with the source of each. Passed as an argument, never a global."""

    home: Path
    host: str
    port: int
    database_url: str
    token: str | None
    workspace_root: tuple[Path, ...]
    scratch_root: Path
    idle_timeout: float
    max_sessions: int
    permission_timeout: int
    agent_start_timeout: int
    cancel_grace: int
    queue_enabled: bool
    queue_delay_seconds: int
    queue_max_size: int
    queue_auto_generate_titles: bool
    rules: tuple[Rule, ...]
    notify_command: tuple[str, ...]
    notify_webhook: str | None
    notify_after: int
    notify_pause: int
    allowed_hosts: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    tls_certificate: Path | None
    tls_key: Path | None
    allow_plain_http_beyond_loopback: bool
    request_timeout: int
    log_level: str
    redact: tuple[str, ...]
    sandbox: SandboxLevel | None
    sandbox_terminals: SandboxLevel
    sandbox_toolchains: tuple[Path, ...]
    sandbox_caches: tuple[Path, ...]
    sandbox_hosts: tuple[str, ...]
    sandbox_memory: int
    sandbox_processes: int
    sandbox_disk: int
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def token_file(self) -> Path:
        """The file with the owner's token."""
        return self.home / "token"

    @property
    def limits(self) -> ResourceLimits:
        """What the sandboxed runs of a session may use."""
        return ResourceLimits(
            memory=self.sandbox_memory, processes=self.sandbox_processes, disk=self.sandbox_disk
        )

    @property
    def scheme(self) -> str:
        """The URL scheme under which the server is reached: https with a certificate, else http."""
        return "https" if self.tls_certificate else "http"


def _default_home(env: Mapping[str, str]) -> Path:
    """Return the default data directory."""
    data = env.get("XDG_DATA_HOME") or os.path.join(_home(env), ".local", "share")
    return Path(data) / "bullpen"


def _home(env: Mapping[str, str]) -> str:
    """Return the user's home directory, from HOME if it is set."""
    return env.get("HOME") or str(Path.home())


# Directories below a home that package managers and builds write.
# Caches of packages and builds. Shells and tools also run files of ~/.cache, ~/.gradle and ~/.m2, so
# these are not writable as a whole.
_CACHES = (
    *(
        f".cache/{name}"
        for name in ("bazel", "ccache", "composer", "deno", "go-build", "huggingface", "mypy")
    ),
    *(f".cache/{name}" for name in ("ms-playwright", "node-gyp", "pip", "pnpm", "puppeteer", "pypoetry")),
    *(f".cache/{name}" for name in ("sccache", "torch", "uv", "yarn", "Cypress", "electron")),
    *(".npm", ".cargo/registry", ".cargo/git", ".gradle/caches", ".gradle/wrapper", ".m2/repository"),
    *("go/pkg", ".bun/install/cache"),
)


def _default_caches(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the caches of the usual tools."""
    return tuple(Path(_home(env)) / name for name in _CACHES)


def _memory_of_machine() -> int:
    """Return the size of the memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


HIDDEN = "(hidden)"

# Patterns of secrets, which redacted exports cover by default.
SECRETS = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]{1,16000}?-----END [A-Z ]*PRIVATE KEY-----",
    r"\bbp[tdscw]_[A-Za-z0-9_-]{16,}",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"\bAKIA[0-9A-Z]{16}\b",
    r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"(?i)(?<=bearer )[A-Za-z0-9._~+/-]{16,}",
)

OPTIONS = (
    SettingDefinition("home", "BULLPEN_HOME", _default_home, parse_path, "the data directory"),
    SettingDefinition("host", "BULLPEN_HOST", lambda _: "127.0.0.1", parse_text, "address to listen on"),
    SettingDefinition("port", "BULLPEN_PORT", lambda _: 7420, parse_number(0, 65535), "port to listen on"),
    SettingDefinition(
        "database_url", "BULLPEN_DATABASE_URL", lambda _: "", parse_text, "SQLAlchemy URL; SQLite by default"
    ),
    SettingDefinition(
        "token", "BULLPEN_TOKEN", lambda _: None, parse_text, "the owner's token; generated if not set", True
    ),
    SettingDefinition(
        "workspace_root",
        "AGENT_WORKSPACE_ROOT",
        lambda _: (),
        parse_paths,
        "directories, separated by colons, that no session may leave; not set: those allowed by the owner",
    ),
    SettingDefinition(
        "scratch_root",
        "BULLPEN_SCRATCH_ROOT",
        lambda env: Path(_home(env)) / "bullpen",
        parse_path,
        "where a session gets a new directory if it names none",
    ),
    SettingDefinition(
        "idle_timeout",
        "AGENT_SESSION_IDLE_TIMEOUT",
        lambda _: 30,
        parse_amount(10**6),
        "minutes until an idle session is completed, such as 0.5; 0: never",
    ),
    SettingDefinition(
        "max_sessions",
        "AGENT_MAX_SESSIONS",
        lambda _: 5,
        parse_number(0, 10**6),
        "sessions with a living agent; 0: any number",
    ),
    SettingDefinition(
        "permission_timeout",
        "BULLPEN_PERMISSION_TIMEOUT",
        lambda _: 0,
        parse_number(0, 10**6),
        "seconds until an unanswered permission is refused; 0: never",
    ),
    SettingDefinition(
        "agent_start_timeout",
        "BULLPEN_AGENT_START_TIMEOUT",
        lambda _: 60,
        parse_number(1, 10**6),
        "seconds an agent may take to answer when it is started",
    ),
    SettingDefinition(
        "cancel_grace",
        "BULLPEN_CANCEL_GRACE",
        lambda _: 30,
        parse_number(0, 10**6),
        "seconds an agent may take to stop when it is cancelled; 0: any",
    ),
    SettingDefinition(
        "queue_enabled",
        "BULLPEN_QUEUE_ENABLED",
        lambda _: True,
        parse_yes_or_no,
        "whether messages may wait for a busy agent",
    ),
    SettingDefinition(
        "queue_delay_seconds",
        "BULLPEN_QUEUE_DELAY_SECONDS",
        lambda _: 0,
        parse_number(0, 86_400),
        "seconds between the end of a turn and the next queued message",
    ),
    SettingDefinition(
        "queue_max_size",
        "BULLPEN_QUEUE_MAX_SIZE",
        lambda _: 10,
        parse_number(1, 1000),
        "messages that may wait in a session",
    ),
    SettingDefinition(
        "queue_auto_generate_titles",
        "BULLPEN_QUEUE_AUTO_GENERATE_TITLES",
        lambda _: True,
        parse_yes_or_no,
        "whether waiting messages get titles",
    ),
    SettingDefinition(
        "rules", "BULLPEN_RULES", lambda _: (), parse_rules, "permissions that are answered automatically"
    ),
    SettingDefinition(
        "notify_command",
        "BULLPEN_NOTIFY_COMMAND",
        lambda _: (),
        parse_argv,
        "the command to run with a title and a text, to notify",
    ),
    SettingDefinition(
        "notify_webhook",
        "BULLPEN_NOTIFY_WEBHOOK",
        lambda _: None,
        parse_web_address,
        "the URL to which notifications are posted",
        True,
    ),
    SettingDefinition(
        "notify_after",
        "BULLPEN_NOTIFY_AFTER",
        lambda _: 5,
        parse_number(0, 86_400),
        "seconds an item waits in the inbox before you are notified",
    ),
    SettingDefinition(
        "notify_pause",
        "BULLPEN_NOTIFY_PAUSE",
        lambda _: 60,
        parse_number(0, 86_400),
        "seconds between notifications of one session",
    ),
    SettingDefinition(
        "allowed_hosts",
        "BULLPEN_ALLOWED_HOSTS",
        lambda _: (),
        parse_names,
        "further host names that the server answers to",
    ),
    SettingDefinition(
        "trusted_proxies",
        "BULLPEN_TRUSTED_PROXIES",
        lambda _: (),
        parse_names,
        "addresses of proxies whose X-Forwarded headers are used",
    ),
    SettingDefinition(
        "tls_certificate", "BULLPEN_TLS_CERTIFICATE", lambda _: None, parse_optional_path, "PEM file"
    ),
    SettingDefinition("tls_key", "BULLPEN_TLS_KEY", lambda _: None, parse_optional_path, "PEM file"),
    SettingDefinition(
        "allow_plain_http_beyond_loopback",
        "BULLPEN_ALLOW_PLAIN_HTTP_BEYOND_LOOPBACK",
        lambda _: False,
        parse_yes_or_no,
        "allow unencrypted access from other machines",
    ),
    SettingDefinition(
        "request_timeout",
        "BULLPEN_REQUEST_TIMEOUT",
        lambda _: 10,
        parse_number(1, 3600),
        "seconds until the headers of a request must be complete, and without a credential its body",
    ),
    SettingDefinition(
        "log_level",
        "BULLPEN_LOG_LEVEL",
        lambda _: "info",
        parse_one_of("debug", "info", "warning", "error"),
        "the least severe level that is logged",
    ),
    SettingDefinition(
        "redact",
        "BULLPEN_REDACT",
        lambda _: SECRETS,
        parse_patterns,
        "regular expressions that a redacted export covers, one in each line",
    ),
    SettingDefinition(
        "sandbox",
        "BULLPEN_SANDBOX",
        lambda _: None,
        parse_level,
        "the least sandbox level of agents; not set: workspace where no other level is chosen",
    ),
    SettingDefinition(
        "sandbox_terminals",
        "BULLPEN_SANDBOX_TERMINALS",
        lambda _: "open",
        parse_one_of(*LEVELS),
        "the sandbox level of terminals that users open",
    ),
    SettingDefinition(
        "sandbox_toolchains",
        "BULLPEN_SANDBOX_TOOLCHAINS",
        lambda _: (),
        parse_paths,
        "further directories, separated by colons, that sandboxed runs may read",
    ),
    SettingDefinition(
        "sandbox_caches",
        "BULLPEN_SANDBOX_CACHES",
        _default_caches,
        parse_paths,
        "directories, separated by colons, that sandboxed runs share with your own tools",
    ),
    SettingDefinition(
        "sandbox_hosts",
        "BULLPEN_SANDBOX_HOSTS",
        lambda _: (),
        parse_names,
        "hosts that sealed runs may reach; a name that begins with a dot includes all its subdomains",
    ),
    SettingDefinition(
        "sandbox_memory",
        "BULLPEN_SANDBOX_MEMORY",
        lambda _: _memory_of_machine() * 3 // 4,
        parse_size,
        "memory that the sandboxed runs of a session may use, such as 12G; 0: no limit",
    ),
    SettingDefinition(
        "sandbox_processes",
        "BULLPEN_SANDBOX_PROCESSES",
        lambda _: 4096,
        parse_number(0, 1 << 22),
        "processes and threads that the sandboxed runs of a session may have; 0: no limit",
    ),
    SettingDefinition(
        "sandbox_disk",
        "BULLPEN_SANDBOX_DISK",
        lambda _: 50 << 30,
        parse_size,
        "disk space that a session with sandboxed runs may fill, such as 50G; 0: no limit",
    ),
)

_NAMES = [option.name for option in OPTIONS]


def config_file(env: Mapping[str, str]) -> Path:
    """Return the path of config.toml."""
    base = env.get("XDG_CONFIG_HOME") or os.path.join(_home(env), ".config")
    return Path(base) / "bullpen" / "config.toml"


def describe(settings: Config) -> dict[str, dict[str, Any]]:
    """Return each setting as JSON: its value, hidden if it is a secret, and its source."""
    return {
        option.name: {"value": _as_json(settings, option), "source": settings.sources[option.name]}
        for option in OPTIONS
    }


def _as_json(settings: Config, option: SettingDefinition) -> Any:
    """Return the value of a setting as JSON; a secret is replaced."""
    value = getattr(settings, option.name)
    if option.secret and value is not None:
        return HIDDEN
    if isinstance(value, tuple):
        return [str(each) for each in value]
    return value if value is None or isinstance(value, bool | int) else str(value)


def load(flags: Mapping[str, Any] | None = None, env: Mapping[str, str] | None = None) -> Config:
    """Return each setting from `flags`, `env`, config.toml or its default: the first that has it counts.

    Raise Invalid with one sentence that says which value is invalid. `env` is by default that of the process.
    """
    env = os.environ if env is None else env
    path = config_file(env)
    layers = (
        ("flag", {name: value for name, value in (flags or {}).items() if value is not None}),
        ("environment", {option.name: env[option.env] for option in OPTIONS if env.get(option.env)}),
        (str(path), _read_file(path)),
    )
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for option in OPTIONS:
        values[option.name], sources[option.name] = _value_and_source(option, layers, env)
    if not values["database_url"]:
        values["database_url"] = f"sqlite:///{values['home']}/bullpen.db"
    return Config(**values, sources=sources)


def _value_and_source(
    option: SettingDefinition, layers: tuple[tuple[str, Mapping[str, Any]], ...], env: Mapping[str, str]
) -> tuple[Any, str]:
    """Return the value of a setting from the first layer that has it, and the name of the layer.

    Raise Invalid if the value is not allowed.
    """
    for source, layer in layers:
        if option.name in layer:
            try:
                return option.read(layer[option.name]), source
            except ValueError as error:
                raise Invalid(f"{_describe_place(option, source)} {error}") from None
    return option.default(env), "default"


def _describe_place(option: SettingDefinition, source: str) -> str:
    """Return where a setting was read from, as a user would write it."""
    match source:
        case "flag":
            return f"--{option.name.replace('_', '-')}"
        case "environment":
            return option.env
        case _:
            return f"{option.name} in {source}"


def _read_file(path: Path) -> dict[str, Any]:
    """Return the settings in config.toml; raise Invalid for a syntax error or an unknown name."""
    try:
        values = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} is not valid TOML: {error}") from None
    for name in values:
        if name not in _NAMES:
            raise Invalid(f"{path} has an unknown setting {name}{_similar(name)}")
    return values


def find_definition(name: str) -> SettingDefinition:
    """Return the definition of a setting, also for a name with hyphens; raise Invalid if there is none."""
    for option in OPTIONS:
        if option.name == name.replace("-", "_"):
            return option
    raise Invalid(f"there is no setting {name}{_similar(name)}")


def _similar(name: str) -> str:
    """Return the setting that an unknown name may mean, or all settings, as the end of a sentence."""
    near = difflib.get_close_matches(name, _NAMES, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(_NAMES)}"
