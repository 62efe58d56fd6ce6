"""An answer to a form is checked against its schema: names, required fields, types, choices and ranges."""

import math
from typing import Any

import pytest

from bullpen.domain.errors import Invalid
from bullpen.domain.forms import check_answer, form_fields

PROPERTIES = {
    "name": {"type": "string", "minLength": 3, "maxLength": 5, "pattern": "[A-Z].*"},
    "port": {"type": "integer", "minimum": 1, "maximum": 65535},
    "share": {"type": "number", "minimum": 0.5},
    "colour": {"type": "string", "enum": ["red", "blue"]},
    "level": {"enum": [1, "two", None]},
    "sure": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}},
}
FORM = {"type": "object", "properties": PROPERTIES, "required": ["name"]}
NAME = {"name": "Ada"}


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"name": "Grace", "port": 1, "share": 0.5, "colour": "red", "level": 1, "sure": True},
        {"port": 65535, "share": 7, "level": None, "sure": False, "tags": ["a"]},
        {"port": 80.0, "level": "two", "tags": "the agent checks fields of an unknown type"},
    ],
)
def test_an_answer_that_fits_the_form_is_accepted(content: dict[str, Any]) -> None:
    check_answer(FORM, NAME | content)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"name": "Al"}, "name must be text, 3 letters or more, 5 letters or less, not Al"),
        ({"name": "Margaret"}, "name must be text, 3 letters or more, 5 letters or less, not Margaret"),
        ({"name": ""}, "name must be text, 3 letters or more, 5 letters or less, not empty"),
        ({"name": None}, "name must be text, 3 letters or more, 5 letters or less, not null"),
        ({"port": "80"}, "port must be a whole number, 1 or more, 65535 or less, not 80"),
        ({"port": 1.5}, "port must be a whole number, 1 or more, 65535 or less, not 1.5"),
        ({"port": True}, "port must be a whole number, 1 or more, 65535 or less, not true"),
        ({"port": 0}, "port must be a whole number, 1 or more, 65535 or less, not 0"),
        ({"port": 65536}, "port must be a whole number, 1 or more, 65535 or less, not 65536"),
        ({"port": math.inf}, "port must be a whole number, 1 or more, 65535 or less, not Infinity"),
        ({"share": 0.49}, "share must be a number, 0.5 or more, not 0.49"),
        ({"share": [1]}, "share must be a number, 0.5 or more, not [1]"),
        ({"colour": "green"}, "colour must be one of red, blue, not green"),
        ({"colour": ["red"]}, 'colour must be one of red, blue, not ["red"]'),
        ({"level": True}, "level must be one of 1, two, null, not true"),
        ({"sure": "yes"}, "sure must be yes or no, not yes"),
        ({"sure": 1}, "sure must be yes or no, not 1"),
        (
            {"hat": "on"},
            "the form has no field hat; its fields: name, port, share, colour, level, sure, tags",
        ),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_with_the_name_of_the_field(
    content: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Invalid) as refused:
        check_answer(FORM, NAME | content)
    assert str(refused.value) == sentence


def test_a_required_field_must_be_filled_in() -> None:
    with pytest.raises(
        Invalid, match=r"^name must be filled in: text, 3 letters or more, 5 letters or less$"
    ):
        check_answer(FORM, {"port": 80})
    with pytest.raises(Invalid, match=r"^why must be filled in$"):
        check_answer({"properties": {"why": {"type": "string", "minLength": 1}}, "required": ["why"]}, {})


@pytest.mark.parametrize("schema", [None, "x", {}, {"properties": 7}, {"properties": {}}])
def test_a_question_without_fields_accepts_any_answer(schema: Any) -> None:
    check_answer(schema, {"anything": [1]})


@pytest.mark.parametrize("bound", [True, "9", math.nan, math.inf, 10**400, -(10**400), [1], None])
def test_a_bound_that_is_no_usable_number_is_ignored(bound: Any) -> None:
    schema = {"properties": {"n": {"type": "integer", "minimum": bound, "maximum": bound}}}
    check_answer(schema, {"n": 5})
    assert form_fields(schema)[0].expected == "a whole number"


def test_a_message_is_one_short_line_whatever_the_agent_and_the_user_send() -> None:
    schema = {"properties": {"a\x1b[31m": {"type": "integer"}}, "required": []}
    with pytest.raises(Invalid) as refused:
        check_answer(schema, {"a\x1b[31m": "\ud800\n" + "x" * 5000})
    assert str(refused.value) == f"a�[31m must be a whole number, not ��{'x' * 98}…"
