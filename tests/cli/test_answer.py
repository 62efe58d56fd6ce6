"""`bullpen answer`: a script or a user fills in the form of an agent's question."""

import json
from typing import Any

import pytest

from bullpen.cli.form import form_content
from bullpen.domain.errors import Invalid
from bullpen.domain.forms import form_fields
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
    """Begin a session whose agent asks a question with a form for each prompt."""
    ask = {"do": "question", "text": "Who are you?", "schema": FORM}
    await define_scripted(server, "curious", {"prompts": [[ask], [ask]]})
    talk = await SessionClient.begin(server, "curious", title="work")
    await talk.prompt("go")
    await talk.wait_for_event("question", status="pending")
    return talk


async def answer_of(talk: SessionClient) -> Any:
    """Wait until the question is answered, and return the answer."""
    return (await talk.wait_for_event("question", status="accepted"))["data"]["answer"]


def test_typed_texts_become_values_of_the_types_in_the_schema() -> None:
    texts = {"name": "Ada", "port": "80", "share": "0.5", "colour": "blue", "sure": "yes"}
    content = {"name": "Ada", "port": 80, "share": 0.5, "colour": "blue", "sure": True, "city": "Oslo"}
    assert form_content(FIELDS, texts) == content
    partial = {"name": "Ada", "port": "80", "share": "", "city": "Rome"}
    assert form_content(FIELDS, partial) == {"name": "Ada", "port": 80, "sure": False, "city": "Rome"}


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
def test_a_text_that_does_not_fit_its_field_is_refused_with_one_sentence(
    change: dict[str, str], sentence: str
) -> None:
    with pytest.raises(Invalid) as refused:
        form_content(FIELDS, {"name": "Ada", "port": "80", **change})
    assert str(refused.value) == sentence


@pytest.mark.parametrize("schema", [None, "x", {}, {"properties": 7}, {"properties": None, "required": 7}])
def test_an_invalid_schema_has_no_fields(schema: Any) -> None:
    assert form_fields(schema) == []


def test_a_field_of_an_unknown_type_is_text() -> None:
    fields = form_fields({"properties": {"odd": None, "list": {"type": ["array"]}}, "required": 7})
    assert form_content(fields, {"odd": "a", "list": "b"}) == {"odd": "a", "list": "b"}


async def test_a_script_lists_a_question_and_answers_it(bullpen: Bullpen, talk: SessionClient) -> None:
    listed = (await bullpen("answer", "work", "--list")).out.splitlines()
    assert listed[:2] == ["asks: curious: Who are you?", "  name: text, 3 letters or more"]
    assert "  colour: one of red, blue; may be left out" in listed
    (question,) = json.loads((await bullpen("answer", "work", "-l", "--json")).out)["questions"]
    assert question["form"] == FORM
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


async def test_a_user_is_asked_for_each_field_until_its_value_is_valid(
    tmux: Tmux, talk: SessionClient
) -> None:
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


async def test_leaving_a_form_leaves_the_question_unanswered(tmux: Tmux, talk: SessionClient) -> None:
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
    questions = await talk.server.call("GET", f"{talk.path}/questions")
    assert len(questions["questions"]) == 1


async def test_a_chat_shows_the_form_of_a_question(tmux: Tmux, server: Server) -> None:
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
