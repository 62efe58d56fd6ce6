"""The sentence of each refusal of definitions, settings, queues and answers."""

from collections.abc import Callable
from typing import Any

import pytest

from bullpen.domain import permissions, queue
from bullpen.domain.agents import read_definition
from bullpen.domain.conversation import Permission, Question
from bullpen.domain.errors import BullpenError, Conflict, EmptyMessage, Invalid, NotFound, QueueFull
from bullpen.domain.ids import is_safe_id, new_id
from bullpen.domain.logins import LoginSigns, check_login
from bullpen.domain.queue import Queue, QueueAdded, QueueItem, QueueSettings
from bullpen.domain.records import RepositorySettings
from bullpen.domain.repositories import apply_edit
from bullpen.domain.screen_patterns import ScreenPatterns, TypingKeys, check_keys, check_signs
from domain.folding import about, after, running, session

ASKED = session(
    *running("a", "auth"),
    *about(
        "a",
        Permission(id="p", tool_call={}, options=[{"optionId": "y"}, 5, {"optionId": "n"}], status="pending"),
        Permission(id="bare", tool_call={}, options=[], status="pending"),
        Question(id="q", message="?", status="pending"),
    ),
)
ANSWERED = after(
    ASKED,
    *about(
        "a",
        Permission(id="p", tool_call={}, options=[], status="selected", option_id="y"),
        Question(id="q", message="?", status="accepted"),
    ),
)
ITEM = QueueItem(id="a", message="hello", queued_at=0)
HELD = Queue(items=(ITEM,), settings=QueueSettings(max_size=2))
REPOSITORY = RepositorySettings(env={"A": "1", "B": "2"})


def define(**changes: Any) -> None:
    fields = {"id": "mine", "name": "Mine", "kind": "acp", "command": ["mine"]}
    read_definition(fields | changes, "mine.toml")


def edit(**changes: Any) -> RepositorySettings:
    return apply_edit(REPOSITORY, changes)


def signs(**changes: Any) -> Callable[[], object]:
    return lambda: check_signs(ScreenPatterns(**changes), "mine.toml")


def keys(**changes: Any) -> Callable[[], object]:
    return lambda: check_keys(TypingKeys(**changes), "mine.toml")


COMMAND = "the {} command has at most 10000 characters and no NUL"
SECONDS = "mine.toml: signs.{} is a number of seconds, at most 3600"
TYPING_SECONDS = "mine.toml: keys.{} is a number of seconds, at most 10"
EMPTY_KEYS = "mine.toml: keys.submit and keys.interrupt must not be empty"
NUL = "mine.toml: a command or a variable cannot have a NUL in it"
VARIABLE = "{!r} cannot be the name of a variable"
FILE_FORMS = "a file is ~/…, /… or ${NAME:-~/…}/…"


@pytest.mark.parametrize(
    ("act", "error", "sentence"),
    [
        (signs(lines=0), Invalid, "mine.toml: signs.lines is a number from 1 to 200"),
        (signs(lines=201), Invalid, "mine.toml: signs.lines is a number from 1 to 200"),
        (signs(settle=-0.1), Invalid, SECONDS.format("settle")),
        (signs(settle=3600.5), Invalid, SECONDS.format("settle")),
        (signs(silence=3600.5), Invalid, SECONDS.format("silence")),
        (signs(idle=("x*",)), Invalid, "mine.toml: signs.idle has 'x*', which is found on every screen"),
        (
            signs(busy=("(",)),
            Invalid,
            "mine.toml: signs.busy has '(', which is not a regular expression: "
            "missing ), unterminated subpattern at position 0",
        ),
        (signs(asking=("",)), Invalid, "mine.toml: signs.asking has '', which is found on every screen"),
        (keys(submit=""), Invalid, EMPTY_KEYS),
        (keys(interrupt=""), Invalid, EMPTY_KEYS),
        (keys(image="path"), Invalid, "mine.toml: keys.image needs a {path} in it"),
        (keys(echo=10.5), Invalid, TYPING_SECONDS.format("echo")),
        (keys(pause=10.5), Invalid, TYPING_SECONDS.format("pause")),
        (keys(pause=-0.1), Invalid, TYPING_SECONDS.format("pause")),
        (
            lambda: define(id="a b"),
            Invalid,
            "mine.toml: an id has letters, digits, dots, dashes and underscores",
        ),
        (lambda: define(name=" "), Invalid, "mine.toml: an agent needs a name"),
        (lambda: define(command=[]), Invalid, "mine.toml: an agent needs a command"),
        (lambda: define(command=["", "x"]), Invalid, "mine.toml: an agent needs a command"),
        (lambda: define(env={"": "x"}), Invalid, f"mine.toml: {VARIABLE.format('')}"),
        (lambda: define(env={"A=": "x"}), Invalid, f"mine.toml: {VARIABLE.format('A=')}"),
        (lambda: define(passEnv=["A\0"]), Invalid, f"mine.toml: {VARIABLE.format(chr(65) + chr(0))}"),
        (lambda: define(command=["a", "\0"]), Invalid, NUL),
        (lambda: define(env={"A": "\0"}), Invalid, NUL),
        (
            lambda: define(quirks={"modeText": "x"}),
            Invalid,
            "mine.toml: modeText needs a group that is the mode",
        ),
        (
            lambda: define(quirks={"modeText": "("}),
            Invalid,
            "mine.toml: modeText is not a regular expression: "
            "missing ), unterminated subpattern at position 0",
        ),
        (lambda: define(keys={"submit": ""}), Invalid, EMPTY_KEYS),
        (lambda: define(signs={"lines": 0}), Invalid, "mine.toml: signs.lines is a number from 1 to 200"),
        (lambda: define(kind="apc"), Invalid, "kind in mine.toml is apc; did you mean acp?"),
        (
            lambda: define(login={"fils": []}),
            Invalid,
            "login in mine.toml has an unknown setting fils; did you mean files?",
        ),
        (
            lambda: define(xyzzy=1),
            Invalid,
            "mine.toml has an unknown setting xyzzy; known are auth, command, "
            "continueCommand, description, env, id, install, keys, kind, login, loginCommand, mcpServers, "
            "name, offer, passEnv, quirks, restart, sandbox, signs, state, titleCommand",
        ),
        (
            lambda: define(command="mine"),
            Invalid,
            "mine.toml: expected `array`, got `str` - at `$.command`",
        ),
        (
            lambda: check_login(LoginSigns(needed=False, env=("A",)), "mine.toml"),
            Invalid,
            "mine.toml: login.needed is false, so there can be no signs of one",
        ),
        (
            lambda: check_login(LoginSigns(files=("a",)), "mine.toml"),
            Invalid,
            f"mine.toml: login.files has 'a'; {FILE_FORMS}",
        ),
        (
            lambda: check_login(LoginSigns(files=("/a\0",)), "mine.toml"),
            Invalid,
            f"mine.toml: login.files has '/a\\x00'; {FILE_FORMS}",
        ),
        *(
            (
                lambda name=name: check_login(LoginSigns(env=(name,)), "mine.toml"),
                Invalid,
                f"mine.toml: login.env has {name!r}, which cannot be the name of a variable",
            )
            for name in ("", "A=", "A\0")
        ),
        (lambda: edit(setup="\0"), Invalid, COMMAND.format("setup")),
        (lambda: edit(cleanup="x" * 10_001), Invalid, COMMAND.format("cleanup")),
        (lambda: edit(env={"1A": "x"}), Invalid, "'1A' cannot be the name of a variable here"),
        (lambda: edit(env={"BULLPEN_X": "x"}), Invalid, "'BULLPEN_X' cannot be the name of a variable here"),
        (lambda: edit(env={"A": "\0"}), Invalid, "the value of A is too long or has a NUL"),
        (lambda: edit(env={"A": "x" * 32_769}), Invalid, "the value of A is too long or has a NUL"),
        (
            lambda: edit(env={f"X{n}": "x" for n in range(99)}),
            Invalid,
            "a repository has at most 100 variables",
        ),
        (
            lambda: queue.enqueue(HELD, QueueAdded(id="b", message=" ")),
            EmptyMessage,
            "a message must not be empty",
        ),
        (
            lambda: queue.enqueue(HELD, QueueAdded(id="a", message="x")),
            Conflict,
            "a message a waits in the queue already",
        ),
        (
            lambda: queue.enqueue(
                Queue(items=(ITEM,), settings=QueueSettings(max_size=1)), QueueAdded(id="b", message="x")
            ),
            QueueFull,
            "the queue is full, its limit is 1; try again later",
        ),
        (
            lambda: queue.enqueue(
                Queue(settings=QueueSettings(enabled=False)), QueueAdded(id="b", message="x")
            ),
            Conflict,
            "the queue of this session is turned off",
        ),
        (lambda: queue.move(HELD, "a", "left"), Invalid, "a message moves up or down, not left"),
        (lambda: queue.remove(HELD, "b"), NotFound, "no message b in the queue"),
        (lambda: queue.check_settings(QueueSettings(max_size=0)), Invalid, "max_size is from 1 to 1000"),
        (lambda: queue.check_settings(QueueSettings(max_size=1001)), Invalid, "max_size is from 1 to 1000"),
        (
            lambda: queue.check_settings(QueueSettings(delay_seconds=86_401)),
            Invalid,
            "delay_seconds is from 0 to 86400",
        ),
        (
            lambda: permissions.answer_permission(ASKED, "p", "x", "me"),
            Invalid,
            "the options are y, n, not x",
        ),
        (
            lambda: permissions.answer_permission(ASKED, "bare", "x", "me"),
            Invalid,
            "the options are none, not x",
        ),
        (lambda: permissions.find_permission(ASKED, "x"), NotFound, "no open permission x"),
        (lambda: permissions.find_permission(ANSWERED, "p"), Conflict, "the permission was answered before"),
        (
            lambda: permissions.answer_question(ANSWERED, "q", "accept", {}, "me"),
            Conflict,
            "the question was answered before",
        ),
        (lambda: permissions.answer_question(ASKED, "x", "accept", {}, "me"), NotFound, "no open question x"),
        (
            lambda: permissions.answer_question(ASKED, "q", "shrug", None, "me"),
            Invalid,
            "a question is answered with one of accept, decline, cancel, not shrug",
        ),
    ],
)
def test_an_invalid_value_is_refused_with_a_sentence(
    act: Callable[[], object], error: type[BullpenError], sentence: str
) -> None:
    with pytest.raises(error) as refused:
        act()
    assert str(refused.value) == sentence


def test_the_smallest_and_largest_values_are_allowed() -> None:
    for lines, seconds in ((1, 0), (200, 3600)):
        check_signs(ScreenPatterns(lines=lines, settle=seconds, silence=seconds), "mine.toml")
    for seconds in (0, 10):
        check_keys(TypingKeys(echo=seconds, pause=seconds), "mine.toml")
    for size, delay in ((1, 0), (1000, 86_400)):
        queue.check_settings(QueueSettings(max_size=size, delay_seconds=delay))
    assert edit(setup=" " + "x" * 9_999).setup == "x" * 9_999
    assert len(edit(env={f"X{n}": "x" * 32_768 for n in range(98)}).env) == 100


def test_an_edit_of_a_repository_changes_only_the_fields_that_it_names() -> None:
    changed = edit(setup=" make ", agent_id="claude", env={"A": None, "C": "3"})
    assert changed == RepositorySettings(setup="make", agent_id="claude", env={"B": "2", "C": "3"})
    assert apply_edit(changed, {"cleanup": "rm", "agent_id": "", "env": {}}) == RepositorySettings(
        setup="make", cleanup="rm", env={"B": "2", "C": "3"}
    )
    assert apply_edit(changed, {}) == changed


def test_an_id_is_safe_in_a_path() -> None:
    assert is_safe_id(new_id())
    assert new_id() != new_id()
    for text in ("a", "A-b_c.9", "x" * 128):
        assert is_safe_id(text)
    for text in ("", ".a", "-a", "_a", "a/b", "a b", "ä", "x" * 129, "a\n"):
        assert not is_safe_id(text)
