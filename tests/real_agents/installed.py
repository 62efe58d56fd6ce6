"""The agents that `make test-agents` installs, configured to use the stub model."""

import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PACKAGES = {"gemini": "@google/gemini-cli", "opencode": "opencode-ai", "codex": "@zed-industries/codex-acp"}
AGENTS = tuple(PACKAGES)


def version(agent: str) -> str:
    """Return the installed version of an agent."""
    about: dict[str, Any] = json.loads((HERE / "node_modules" / PACKAGES[agent] / "package.json").read_text())
    return str(about["version"])


def environment(home: Path, port: int) -> dict[str, str]:
    """Return the environment of a server whose user has all agents, and keys for the stub model."""
    temporary = (
        home / "tmp"
    )  # codex stores no sessions below the temporary directory, in which pytest has the homes
    programs = [HERE / "node_modules" / ".bin", Path(sys.executable).parent]
    return {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
        "GEMINI_API_KEY": "stub",
        "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{port}",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENAI_API_KEY": "stub",
    }


def set_up(home: Path, port: int) -> None:
    """Write the settings of each agent into the home of its user."""
    (home / "tmp").mkdir(parents=True)
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(CODEX.format(port=port))
    _write(home / ".gemini" / "settings.json", GEMINI)
    _write(home / ".config" / "opencode" / "opencode.json", opencode(port))


GEMINI: dict[str, Any] = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "model": {"name": "gemini-2.5-pro"},
}

CODEX = """
model = "gpt-5.4"
model_provider = "stub"
approval_policy = "on-request"
sandbox_mode = "read-only"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.stub]
name = "Stub"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
"""


def opencode(port: int) -> dict[str, Any]:
    limit = {"context": 128_000, "output": 8_000}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Stub",
        "options": {"baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": "stub"},
        "models": {"stub": {"name": "Stub", "limit": limit}},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "stub/stub",
        "small_model": "stub/stub",
        "permission": {"edit": "ask", "bash": "ask"},
        "provider": {"stub": provider},
    }


def _write(path: Path, settings: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(settings))
