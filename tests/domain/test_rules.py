"""A rule answers only permissions that match it exactly, and none that only resemble them."""

from typing import Any

import pytest
from msgspec.structs import replace

from bullpen.domain.conversation import Permission
from bullpen.domain.errors import Invalid
from bullpen.domain.rules import Rule, find_rule, read_rule

OPTIONS = [
    {"optionId": "1", "name": "Allow", "kind": "allow_once"},
    {"optionId": "2", "name": "Always", "kind": "allow_always"},
    {"optionId": "3", "name": "No", "kind": "reject_once"},
]
READING = {"name": "reading", "agentId": "demo", "kind": "read", "answer": "allow"}
ZERO_WIDTH = "\u200b"


def rule(**more: Any) -> Rule:
    return read_rule(READING | more)


def asked(options: list[Any] | None = None, **call: Any) -> Permission:
    return Permission(
        id="w.1.0",
        tool_call={"toolCallId": "c", **call},
        options=OPTIONS if options is None else options,
        status="pending",
    )


def chosen_option(with_rule: Rule, permission: Permission, agent_id: str | None = "demo") -> str | None:
    found = find_rule([with_rule], agent_id, permission)
    return found[1] if found else None


def test_a_rule_chooses_the_option_for_one_time_of_a_matching_permission() -> None:
    assert chosen_option(rule(), asked(kind="read")) == "1"
    assert chosen_option(rule(answer="reject"), asked(kind="read")) == "3"


@pytest.mark.parametrize(
    "call",
    [
        {"kind": "read_and_delete"},
        {"kind": f"read{ZERO_WIDTH}"},
        {"kind": f"{ZERO_WIDTH}read"},
        {"kind": "r\u0435ad"},  # a Cyrillic letter
        {"kind": "Read"},
        {"kind": " read"},
        {"kind": "other"},
        {"kind": "teleport"},
        {"kind": None},
        {"kind": ["read"]},
        {"title": "read"},
        {},
    ],
)
def test_a_call_whose_kind_does_not_match_exactly_is_not_answered(call: dict[str, Any]) -> None:
    assert chosen_option(rule(), asked(**call)) is None


def test_a_kind_that_was_only_announced_does_not_match() -> None:
    announced = {"toolCallId": "c", "kind": "read"}
    assert find_rule([rule()], "demo", asked(), announced) is None
    shown = replace(asked(kind="read"), announced=("kind",))
    assert find_rule([rule()], "demo", shown, announced) is None


@pytest.mark.parametrize("agent_id", [None, "", "demo2", f"demo{ZERO_WIDTH}", "DEMO"])
def test_a_permission_of_another_agent_is_not_answered(agent_id: str | None) -> None:
    assert chosen_option(rule(), asked(kind="read"), agent_id) is None


@pytest.mark.parametrize(
    "call",
    [
        {"rawInput": {"command": "rm -rf /"}},
        {"rawInput": {"command": ["rm", "-rf", "/"]}},
        {"rawInput": {"cmd": "rm"}},
        {"rawInput": {"command": None, "cmd": "rm -rf /"}},
        {"rawInput": {"command": "", "cmd": "rm -rf /"}},
        {"rawInput": {"command": 7}},
        {"rawInput": "rm -rf /"},
        {"rawInput": {"env": {"LD_PRELOAD": "x"}}},
    ],
)
def test_a_call_with_input_that_the_rule_does_not_name_is_not_answered(call: dict[str, Any]) -> None:
    assert chosen_option(rule(), asked(kind="read", **call)) is None


EXECUTE = {"kind": "execute", "command": "git push"}


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"command": "git push"}, "1"),
        ({"command": ["git", "push"]}, "1"),
        ({"command": "git", "args": ["push"]}, "1"),
        ({"command": "git push", "description": "harmless"}, "1"),
        ({"command": None, "cmd": "git push"}, "1"),
        ({"command": "git push", "cmd": "rm -rf /"}, None),
        ({"command": "git push --force"}, None),
        ({"command": "git push; rm -rf /"}, None),
        ({"command": f"git push{ZERO_WIDTH}"}, None),
        ({"command": "git  push"}, None),
        ({"command": "git", "args": ["push", "--force"]}, None),
        ({"command": "git push", "cwd": "/elsewhere"}, None),
        ({"command": "git push", "env": {"GIT_SSH": "x"}}, None),
        ({"command": ["git push"]}, None),
        ({}, None),
    ],
)
def test_a_rule_matches_only_the_whole_command(given: dict[str, Any], option: str | None) -> None:
    """The command counts, whatever the title of the call says."""
    assert chosen_option(rule(**EXECUTE), asked(kind="execute", title="git push", rawInput=given)) == option


@pytest.mark.parametrize(
    ("call", "option"),
    [
        ({"locations": [{"path": "/w/a"}]}, "1"),
        ({"rawInput": {"file_path": "/w/a"}}, "1"),
        ({"locations": [{"path": "/w/a"}], "content": [{"type": "diff", "path": "/w/a"}]}, "1"),
        ({"locations": [{"path": "/w/a"}, {"path": "/w/b"}]}, None),
        ({"locations": [{"path": "/w/a"}], "rawInput": {"path": "/etc/passwd"}}, None),
        ({"locations": [{"path": "/w/a"}], "content": [{"type": "diff", "path": "/w/b"}]}, None),
        ({"locations": [{"path": "/w/../w/a"}]}, None),
        ({"locations": [{"path": f"/w/a{ZERO_WIDTH}"}]}, None),
        ({"title": "/w/a"}, None),
        ({}, None),
    ],
)
def test_a_rule_matches_only_if_every_path_of_the_call_matches(
    call: dict[str, Any], option: str | None
) -> None:
    assert chosen_option(rule(kind="edit", path="/w/a"), asked(kind="edit", **call)) == option


def test_announced_fields_count_where_the_permission_has_none() -> None:
    announced = {"kind": "execute", "rawInput": {"command": "git push"}}
    found = find_rule([rule(**EXECUTE)], "demo", asked(kind="execute"), announced)
    assert found is not None


@pytest.mark.parametrize(
    "options",
    [
        [],
        [{"optionId": "2", "name": "Always", "kind": "allow_always"}],
        [OPTIONS[0], OPTIONS[0] | {"optionId": "other"}],
        [{"name": "no id", "kind": "allow_once"}],
        ["allow_once"],
    ],
)
def test_a_permission_without_exactly_one_matching_option_is_not_answered(options: list[Any]) -> None:
    assert chosen_option(rule(), asked(options, kind="read")) is None


SHAPE = "a rule has name, agentId, kind and answer, perhaps path or command: {}"
KINDS = "read, edit, delete, move, search, execute, think, fetch, switch_mode"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("reading", SHAPE.format("Expected `object`, got `str`")),
        ({}, SHAPE.format("Object missing required field `name`")),
        (READING | {"kind": "other"}, f"the kind of a rule is one of {KINDS}, not other"),
        (
            READING | {"kind": f"read{ZERO_WIDTH}"},
            f"the kind of a rule is one of {KINDS}, not read{ZERO_WIDTH}",
        ),
        (READING | {"answer": "always"}, "a rule answers allow or reject, not always"),
        (
            READING | {"paths": "/w", "env": 1},
            "a rule has no env, paths: leaving it out would answer more than meant",
        ),
        *(
            (READING | {name: f"x{letter}"}, "a rule has letters that cannot be seen")
            for name, letter in (
                ("path", ZERO_WIDTH),
                ("name", "\x07"),
                ("agentId", "\ue000"),
                ("command", "\u0378"),
                ("path", "\u2028"),
                ("path", "\u2029"),
            )
        ),
        (READING | {"path": ""}, "every word of a rule has 1 to 4096 letters"),
        (READING | {"name": " "}, "every word of a rule has 1 to 4096 letters"),
        (READING | {"command": "x" * 4097}, "every word of a rule has 1 to 4096 letters"),
        (READING | {"path": "/w", "command": "x"}, "a rule is about a path or a command, not both"),
        (READING | {"kind": "execute"}, "a rule that allows execute names the command, exactly"),
        (
            READING | {"kind": "execute", "path": "/w"},
            "a rule that allows execute names the command, exactly",
        ),
    ],
)
def test_an_invalid_or_too_broad_rule_is_refused(value: Any, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_rule(value)
    assert str(refused.value) == sentence


def test_a_rule_has_the_fields_that_were_given() -> None:
    value = {"name": "n", "agentId": "a", "kind": "execute", "answer": "allow", "command": "x" * 4096}
    read = read_rule(value)
    assert read == Rule(name="n", agent_id="a", kind="execute", answer="allow", command="x" * 4096)
    assert str(read) == "n"
    assert read_rule({"name": "n", "agentId": "a", "kind": "execute", "answer": "reject"}).command is None
