"""`bullpen answer`: forms that agents ask with, filled in by a script and by a person."""

import json
from typing import Any

import pytest

from bullpen.cli.form import form_content, form_fields
from bullpen.domain.errors import Invalid
from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient, define_scripted
from support.tmux import PROMPT, Tmux

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 3},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "share": {"type": "number"},
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "sure": {"type": "boolean"},
        "city": {"type": "string", "default": "Oslo"},
    },
    "required": ["name", "port"],
}
FIELDS = form_fields(FORM)


@pytest.fixture
async def talk(server: Server) -> SessionClient:
    """A session whose agent asks with a form, each time it is prompted."""
    ask = {"do": "question", "text": "Who are you?", "schema": FORM}
    await define_scripted(server, "curious", {"prompts": [[ask], [ask]]})
    talk = await SessionClient.begin(server, "curious", title="work")
    await talk.prompt("go")
    await talk.wait_for_event("question", status="pending")
    return talk


async def answer_of(talk: SessionClient) -> Any:
    """What the agent was told."""
    return (await talk.wait_for_event("question", status="accepted"))["data"]["answer"]


def test_what_is_sent_has_the_types_of_the_schema() -> None:
    given = {"name": "Ada", "port": "80", "share": "0.5", "colour": "blue", "sure": "yes"}
    filled = {"name": "Ada", "port": 80, "share": 0.5, "colour": "blue", "sure": True, "city": "Oslo"}
    assert form_content(FIELDS, given) == filled
    few = {"name": "Ada", "port": "80", "share": "", "city": "Rome"}
    assert form_content(FIELDS, few) == {"name": "Ada", "port": 80, "sure": False, "city": "Rome"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": ""}, "name must be filled in: text, 3 letters or more"),
        ({"name": "Al"}, "name must be text, 3 letters or more, not Al"),
        ({"port": "many"}, "port must be a whole number, 1 or more, 65535 or less, not many"),
        ({"port": "1.5"}, "port must be a whole number, 1 or more, 65535 or less, not 1.5"),
        ({"port": "0"}, "port must be a whole number, 1 or more, 65535 or less, not 0"),
        ({"share": "nan"}, "share must be a number, not nan"),
        ({"colour": "green"}, "colour must be one of red, blue, not green"),
        ({"sure": "perhaps"}, "sure must be yes or no, not perhaps"),
        ({"hat": "on"}, "the form has no field hat; its fields: name, port, share, colour, sure, city"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(change: dict[str, str], sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        form_content(FIELDS, {"name": "Ada", "port": "80", **change})
    assert str(refused.value) == sentence


@pytest.mark.parametrize("schema", [None, "x", {}, {"properties": 7}, {"properties": None, "required": 7}])
def test_a_schema_that_is_none_has_no_fields(schema: Any) -> None:
    assert form_fields(schema) == []


def test_a_field_of_a_kind_nobody_knows_is_text() -> None:
    fields = form_fields({"properties": {"odd": None, "list": {"type": ["array"]}}, "required": 7})
    assert form_content(fields, {"odd": "a", "list": "b"}) == {"odd": "a", "list": "b"}


async def test_a_script_sees_what_is_asked_and_answers_it(bullpen: Bullpen, talk: SessionClient) -> None:
    listed = (await bullpen("answer", "work", "--list")).out.splitlines()
    assert listed[:2] == ["asks: curious: Who are you?", "  name: text, 3 letters or more"]
    assert "  colour: one of red, blue; may be left out" in listed
    (asked,) = json.loads((await bullpen("answer", "work", "-l", "--json")).out)["questions"]
    assert asked["form"] == FORM
    assert await bullpen("answer", "work") == (
        2,
        "",
        "bullpen: name must be filled in: text, 3 letters or more\n",
    )
    assert (
        await bullpen("answer", "work", "-f", "name")
    ).err == "bullpen: --field needs NAME=VALUE, not name\n"
    done = await bullpen("answer", "work", "--field", "name=A = B", "-f", "port=80", "--json")
    content = {"name": "A = B", "port": 80, "sure": False, "city": "Oslo"}
    assert json.loads(done.out)["content"] == await answer_of(talk) == content
    assert (await bullpen("answer", "work")).err == "bullpen: work asks no question\n"


async def test_a_question_can_be_declined(bullpen: Bullpen, talk: SessionClient) -> None:
    assert await bullpen("answer", "work/curious", "--decline") == (0, "declined: Who are you?\n", "")
    await talk.wait_for_event("question", status="declined")


async def test_a_person_is_asked_for_each_field_until_it_fits(tmux: Tmux, talk: SessionClient) -> None:
    await tmux.enter("bullpen answer work --field share=2")
    await tmux.until("Your name:")
    await tmux.enter("")
    await tmux.until("name must be filled in")
    await tmux.enter("Ada")
    await tmux.until("port (a whole number, 1 or more, 65535 or less):")
    await tmux.enter("many")
    await tmux.until("not many")
    await tmux.enter("80")
    await tmux.until("2. blue")
    await tmux.enter("2")
    await tmux.until("sure (yes or no):")
    await tmux.enter("y")
    await tmux.until("city [Oslo]:")
    await tmux.enter("")
    await tmux.until("answered: Who are you?")
    filled = {"name": "Ada", "port": 80, "share": 2, "colour": "blue", "sure": True, "city": "Oslo"}
    assert await answer_of(talk) == filled


async def test_who_leaves_a_form_has_answered_nothing(tmux: Tmux, talk: SessionClient) -> None:
    await tmux.enter("bullpen answer work")
    await tmux.until("Your name:")
    await tmux.type("C-d")
    await tmux.until("\nbullpen: nothing was done")
    await tmux.enter("clear")
    await tmux.until(lambda screen: "Your name:" not in screen)
    await tmux.enter("bullpen answer work")
    await tmux.until("Your name:")
    await tmux.type("C-c")
    await tmux.until(lambda screen: screen.rstrip().endswith(PROMPT))
    asked = await talk.server.call("GET", f"{talk.path}/questions")
    assert len(asked["questions"]) == 1


async def test_a_chat_asks_what_the_agent_asks(tmux: Tmux, server: Server) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server, title="chatty")
    await tmux.enter("bullpen chat chatty")
    await tmux.until("an empty line leaves")
    await tmux.enter("[[question 'Which port?']]")
    await tmux.until("scripted asks: Which port?")
    await tmux.until("name:")
    await tmux.enter("80")
    await tmux.until("answered")
    assert await answer_of(talk) == {"name": "80"}
    await tmux.enter("")
    await tmux.until(lambda screen: screen.rstrip().endswith(PROMPT))
