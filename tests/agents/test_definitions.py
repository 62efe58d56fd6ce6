"""Agent definitions: built-in ones are valid, a user's file replaces them, and mistakes are explained."""

from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.definitions import builtin, load
from bullpen.domain.agents import (
    AgentDefinition,
    AgentQuirks,
    OfferedCapabilities,
    fill_placeholders,
    read_definition,
)
from bullpen.domain.errors import Invalid

MINIMAL: dict[str, Any] = {"id": "mine", "name": "Mine", "kind": "acp", "command": ["mine", "--acp"]}

# Variables that an agent around the server may have set: never inherited, but a definition may set them.
NEVER_INHERITED = ("CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX")


def test_the_built_in_agents_are_known() -> None:
    acp_agents = {"claude", "codex", "copilot", "demo", "gemini", "opencode", "qwen"}
    terminal_agents = {"aider", *(f"{id}-tui" for id in acp_agents - {"demo"})}
    assert {id for id, each in builtin().items() if each.kind == "acp"} == acp_agents
    assert {id for id, each in builtin().items() if each.kind == "pty"} == terminal_agents


@pytest.mark.parametrize("definition", builtin().values(), ids=lambda definition: definition.id)
def test_a_built_in_definition_says_how_to_install_and_start_it(definition: AgentDefinition) -> None:
    assert definition.install
    assert definition.description
    assert len(set(definition.pass_env)) == len(definition.pass_env)
    assert set(definition.auth) <= set(definition.pass_env)
    assert set(definition.login.env) <= {*definition.pass_env, *NEVER_INHERITED}
    if definition.id == "demo":
        assert not definition.login.needed
        return
    assert definition.login.env
    assert definition.login.files or "linux" in definition.login.hidden
    assert "{prompt}" in definition.title_command
    assert definition.continue_command
    if definition.kind == "acp":
        assert definition.login_command
        assert "{sessionId}" in definition.continue_command
    else:
        assert definition.signs.asking
        assert definition.signs.busy
        assert definition.signs.idle


def test_quirks_of_real_agents_are_data() -> None:
    gemini, codex = builtin()["gemini"].quirks, builtin()["codex"].quirks
    assert (gemini.missing_file, gemini.load_after, gemini.late_history) == ("empty", 60, True)
    assert gemini.mode_text is not None
    assert not codex.ends_on_eof
    assert builtin()["opencode"].quirks == AgentQuirks()


def test_a_definition_needs_only_name_kind_and_command() -> None:
    definition = read_definition(MINIMAL, "request")
    assert definition.command == ("mine", "--acp")
    assert definition.offer == OfferedCapabilities(fs=True, terminal=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"comand": ["x"]}, "unknown setting comand; did you mean command?"),
        ({"passenv": []}, "did you mean passEnv?"),
        (
            {"offer": {"terminals": True}},
            "offer in request has an unknown setting terminals; did you mean terminal?",
        ),
        ({"quirks": {"loadafter": 5}}, "did you mean loadAfter?"),
        ({"xyzzy": 1}, "known are auth, command,"),
        ({"kind": "apc"}, "kind in request is apc; did you mean acp?"),
        ({"kind": 7}, "request: "),
        ({"command": []}, "an agent needs a command"),
        ({"command": "mine --acp"}, "`$.command`"),
        ({"command": ["a\0b"]}, "NUL"),
        ({"name": " "}, "an agent needs a name"),
        ({"id": "../up"}, "an id has letters"),
        ({"env": {"A=B": "x"}}, "cannot be the name of a variable"),
        ({"passEnv": [""]}, "cannot be the name of a variable"),
        ({"env": {"A": 1}}, "`$.env"),
        ({"quirks": {"modeText": "("}}, "not a regular expression"),
        ({"quirks": {"modeText": "x"}}, "needs a group"),
        ({"quirks": {"missingFile": "vanish"}}, "quirks.missingFile"),
        ({"login": {"file": []}}, "login in request has an unknown setting file; did you mean files?"),
        ({"login": {"files": ["auth.json"]}}, "a file is ~/…, /… or ${NAME:-~/…}/…"),
        ({"login": {"files": ["${HOME}/auth.json"]}}, "login.files has '${HOME}/auth.json'"),
        ({"login": {"files": ["${A:-b}/auth.json"]}}, "login.files"),
        ({"login": {"files": ["${A:-~/.a}"]}}, "login.files"),
        ({"login": {"files": ["~/${A:-/b}/auth.json"]}}, "login.files"),
        ({"login": {"files": ["~ada/auth.json"]}}, "login.files"),
        ({"login": {"files": ["/a\0b"]}}, "login.files"),
        ({"login": {"env": ["A=B"]}}, "login.env has 'A=B', which cannot be the name of a variable"),
        ({"login": {"hidden": ["windows"]}}, "login.hidden"),
        ({"login": {"needed": False, "env": ["A"]}}, "there can be no signs of one"),
    ],
)
def test_a_mistake_is_named_with_its_setting_and_the_most_similar_word(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(Invalid) as refused:
        read_definition(MINIMAL | change, "request")
    assert message in str(refused.value)


@pytest.mark.parametrize("missing", ["name", "kind", "command"])
def test_a_missing_required_setting_is_named(missing: str) -> None:
    with pytest.raises(Invalid, match=missing):
        read_definition({key: value for key, value in MINIMAL.items() if key != missing}, "request")


def test_definitions_of_the_user_are_added_and_replace_built_in_ones(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "Mine"\nkind = "pty"\ncommand = ["mine"]\n')
    (tmp_path / "gemini.toml").write_text('name = "My Gemini"\nkind = "acp"\ncommand = ["my-gemini"]\n')
    loaded = load(tmp_path)
    assert loaded.problems == []
    assert loaded.definitions["mine"].kind == "pty"
    assert loaded.definitions["gemini"].name == "My Gemini"
    assert "claude" in loaded.definitions


def test_an_invalid_file_does_not_affect_other_definitions(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("name = ")
    (tmp_path / "b.toml").write_text('name = "B"\nkind = "acp"\ncommand = ["b"]\ninstal = "x"\n')
    (tmp_path / "c.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "d.toml").write_text('name = "D"\nkind = "acp"\ncommand = ["d"]\n')
    loaded = load(tmp_path)
    assert "d" in loaded.definitions
    assert [problem.partition(" ")[0] for problem in loaded.problems] == [
        str(tmp_path / name) for name in ("a.toml", "b.toml", "c.toml")
    ]
    assert "did you mean install?" in loaded.problems[1]


def test_a_missing_directory_counts_as_empty(tmp_path: Path) -> None:
    assert load(tmp_path / "nowhere").definitions == builtin()


def test_a_placeholder_never_adds_arguments_to_a_command() -> None:
    filled = fill_placeholders(
        ["agent", "-p", "{prompt}", "--in={directory}"], prompt="two words {directory}", directory="here; rm"
    )
    assert filled == ("agent", "-p", "two words {directory}", "--in=here; rm")
    assert fill_placeholders(["{unknown}", "{}"], prompt="x") == ("{unknown}", "{}")


@pytest.mark.parametrize("agent", ["claude", "codex", "copilot", "gemini", "opencode", "qwen"])
def test_an_acp_agent_and_its_terminal_agent_have_the_same_login(agent: str) -> None:
    acp_agent, terminal_agent = builtin()[agent], builtin()[f"{agent}-tui"]
    assert (acp_agent.login, acp_agent.login_command) == (
        terminal_agent.login,
        terminal_agent.login_command,
    )
