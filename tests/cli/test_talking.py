"""The verbs that talk to agents, as a script and as a person use them."""

import json
import re
import sys
from pathlib import Path

import pytest

from bullpen import __version__
from bullpen.cli.approve import describe_call
from bullpen.cli.chat import match_option
from support.commands import Bullpen
from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted
from support.tmux import PROMPT, Tmux
from support.tui_session_client import TuiSessionClient, define_tui, journal_of
from web.people import new_token


@pytest.fixture
async def talk(server: Server) -> SessionClient:
    await define_scripted(server)
    return await SessionClient.begin(server, title="work")


async def test_run_prints_the_answer_and_exits_by_the_stop_reason(bullpen: Bullpen, server: Server) -> None:
    await define_scripted(server)

    async def run(prompt: str, *options: str) -> tuple[int, str, str]:
        command = ("run", prompt, "--agent", "scripted", "-C", str(server.workspace), *options)
        return await bullpen(*command)

    assert await run("[[chunk 'all done']]", "--wait") == (0, "all done\n", "")
    code, out, err = await run("[[chunk half]] [[error text=broken]]", "--wait")
    assert (code, out) == (1, "half\n")
    assert "broken" in err
    code, _, err = await run("[[permission title=delete]]", "--wait")
    assert code == 3
    assert "delete" in err
    assert "bullpen approve" in err
    done = json.loads((await run("[[chunk x]]", "--wait", "--json"))[1])
    assert (done["text"], done["stopReason"], done["error"]) == ("x", "end_turn", None)
    code, out, _ = await run("[[chunk x]]", "--quiet")
    assert code == 0
    assert (await server.call("GET", f"/api/sessions/{out.strip()}"))["id"] == out.strip()


async def test_run_names_the_session_after_its_prompt(bullpen: Bullpen, server: Server) -> None:
    await define_scripted(server)
    where = ("--agent", "scripted", "-C", str(server.workspace))
    for prompt, options in (("[[chunk x]] tidy up. Then rest.", ()), ("[[chunk y]]", ("--name", "second"))):
        assert (await bullpen("run", prompt, *where, *options)).code == 0
    titles = {each["title"] for each in (await server.call("GET", "/api/sessions"))["sessions"]}
    assert titles == {"[[chunk x]] tidy up.", "second"}


async def test_a_session_that_failed_is_not_forgotten(bullpen: Bullpen, server: Server) -> None:
    await define_scripted(server)
    where = ("--agent", "scripted", "-C", str(server.workspace))
    assert (await bullpen("run", "[[crash]]", *where, "--wait")).code == 1
    assert (await bullpen("ls")).out == "1 failed in the last day; see: bullpen ls -a\n"
    assert (await bullpen("ls", "-q")).out == ""
    assert "[[crash]]" in (await bullpen("ls", "-a")).out


async def test_a_turn_that_failed_is_listed_as_such_until_one_goes_well(
    bullpen: Bullpen, talk: SessionClient
) -> None:
    why = "the turn failed: the model is overloaded"
    await talk.run_turn("[[error text='the model is overloaded']]")
    assert f"  error: {why}  " in (await bullpen("ls")).out
    assert why in (await bullpen("show", "work")).out
    waiting = (await bullpen("inbox")).out
    assert (waiting.splitlines()[1].split()[0], why in waiting) == ("failed", True)
    assert await bullpen("wait", "work") == (1, f"scripted: {why}\n", "")
    await talk.run_turn("[[chunk better]]")
    assert "  done, not seen yet  " in (await bullpen("ls")).out
    assert (await bullpen("wait", "work")).code == 0


async def test_wait_does_not_ask_again_at_every_word(
    bullpen: Bullpen, talk: SessionClient, server: Server
) -> None:
    async def answers() -> int:
        metrics = (await server.http.get("/metrics")).text
        return int(float(re.search(r'http_answers_total{status="200"} (\S+)', metrics)[1]))  # type: ignore[index]

    await talk.prompt("[[sleep 2]] " + "[[tool]] [[sleep 0.02]] " * 100)
    before = await answers()
    assert (await bullpen("wait", "work")).code == 0
    assert len(await talk.tool_statuses()) == 100
    assert await answers() - before < 50


async def test_what_is_done_and_nobody_has_seen_comes_before_what_works(
    bullpen: Bullpen, server: Server
) -> None:
    await define_scripted(server)
    talks = {
        title: await SessionClient.begin(server, title=title)
        for title in ("resting", "done", "asking", "working")
    }
    await talks["working"].prompt("[[wait_cancel]]")
    await talks["asking"].prompt("[[permission]]")
    await talks["asking"].open_permission()
    for title in ("done", "resting"):
        await talks[title].run_turn("[[chunk x]]")
    await server.call("POST", f"{talks['resting'].path}/seen", 204, json={})

    listed = [line.split()[:2] for line in (await bullpen("ls")).out.splitlines()[1:]]
    assert listed == [["●", "asking"], ["◆", "done"], ["◐", "working"], ["○", "resting"]]
    told = await bullpen("status")
    assert (told.code, "  ◆ done  done, not seen yet · " in told.out) == (3, True), told.out
    assert "◆ done, not seen yet" in (await bullpen("show", "done")).out
    moods = json.loads((await bullpen("status", "--json")).out)["sessions"]
    assert moods == {"needs input": 1, "done": 1, "working": 1, "idle": 1}


async def test_a_delegate_that_may_not_see_the_inbox_lists_its_sessions(
    bullpen: Bullpen, server: Server
) -> None:
    await define_scripted(server)
    bullpen.env["BULLPEN_TOKEN"] = (await new_token(server, "delegate"))["token"]
    where = ("--agent", "scripted", "-C", str(server.workspace), "--name", "mine", "--wait")
    assert (await bullpen("run", "[[chunk x]]", *where)).code == 0
    assert "mine" in (await bullpen("ls")).out


async def test_who_reads_an_answer_in_a_terminal_has_seen_it(
    bullpen: Bullpen, talk: SessionClient, tmux: Tmux
) -> None:
    async def waiting() -> list[dict[str, str]]:
        items: list[dict[str, str]] = json.loads((await bullpen("inbox", "--json")).out)["items"]
        return items

    assert (await bullpen("send", "work", "[[chunk hello]]", "--wait")).out == "hello\n"
    assert [each["kind"] for each in await waiting()] == ["finished"]  # only a script has read that
    await tmux.enter("bullpen send work '[[chunk hello]] [[chunk again]]' --wait; echo over")
    await tmux.until("helloagain\nover")
    assert await waiting() == []
    await tmux.enter("bullpen chat work")
    await tmux.until("an empty line leaves")
    await tmux.enter("[[chunk third]] [[chunk time]]")
    await tmux.until("thirdtime")
    await tmux.until(lambda screen: screen.rstrip().endswith("\n>"))
    assert await waiting() == []


async def test_run_with_an_agent_that_is_not_installed_names_the_install_command_and_leaves_nothing(
    bullpen: Bullpen, server: Server
) -> None:
    body = {"name": "Ghost", "kind": "acp", "command": ["no-such-program"], "install": "summon ghost"}
    await server.call("PUT", "/api/agents/ghost", 200, json=body)
    why = "Ghost is not installed (no-such-program is not on the path); to install it, run: summon ghost"
    gone = await bullpen("run", "x", "--agent", "ghost", "-C", str(server.workspace), "--wait")
    assert gone == (1, "", f"bullpen: {why}\n")
    assert (await bullpen("inbox")).out == "nothing waits for you\n"
    assert (await bullpen("ls", "-a", "-q")).out == ""
    order = {"agentId": "ghost", "locationPath": str(server.workspace)}
    refused = await server.call("POST", "/api/sessions", 409, json=order)
    assert refused["message"] == why
    unknown = await bullpen("run", "x", "--agent", "nobody", "-C", str(server.workspace))
    assert unknown.code == 2


async def requests_of(server: Server, session_id: str) -> list[tuple[str, object]]:
    """What the agent was asked once it had started, in order."""
    page = await server.call("GET", f"/api/sessions/{session_id}/events?types=request_sent")
    sent = [(each["data"]["method"], each["data"].get("params")) for each in page["events"]]
    return [each for each in sent if each[0].startswith(("session/set", "session/prompt"))]


async def test_a_model_and_a_mode_are_set_before_the_prompt(bullpen: Bullpen, server: Server) -> None:
    await define_scripted(server)
    options = ("--agent", "scripted", "-C", str(server.workspace), "--model", "large", "--mode", "plan")
    ran = await bullpen("run", "[[chunk x]]", "-d", "-q", *options)
    assert (ran.code, ran.err) == (0, "")
    asked = await requests_of(server, ran.out.strip())
    assert asked[:2] == [
        ("session/set_model", {"modelId": "large"}),
        ("session/set_mode", {"modeId": "plan"}),
    ]
    assert [method for method, _ in asked[2:]] == ["session/prompt"]
    sent = await bullpen("send", ran.out.strip(), "[[chunk y]]", "--model", "small", "--wait")
    assert sent == (0, "y\n", "")
    after = (await requests_of(server, ran.out.strip()))[3:]
    assert (after[0], after[1][0]) == (("session/set_model", {"modelId": "small"}), "session/prompt")
    made = await bullpen("new", str(server.workspace), "-q", "--agent", "scripted", "--model", "tiny")
    assert await requests_of(server, made.out.strip()) == [("session/set_model", {"modelId": "tiny"})]


async def test_a_model_the_agent_refuses_is_told_and_leaves_no_session(
    bullpen: Bullpen, server: Server
) -> None:
    models = {"currentModelId": "big", "availableModels": [{"modelId": "big"}, {"modelId": "small"}]}
    refusing = {
        "on": {"session/set_model": ["error 'no such model'"]},
        "agent": {"session": {"models": models}},
    }
    await define_scripted(server, script=refusing)
    where = ("--agent", "scripted", "--model", "huge")
    why = "bullpen: the agent refuses the model huge: no such model; it has big, small\n"
    assert await bullpen("run", "[[chunk x]]", "-C", str(server.workspace), *where) == (1, "", why)
    assert await bullpen("new", str(server.workspace), *where) == (1, "", why)
    assert (await server.call("GET", "/api/sessions"))["sessions"] == []
    talk = await SessionClient.begin(server, title="work")
    assert await bullpen("send", "work", "[[chunk x]]", "--model", "huge") == (1, "", why)
    assert [method for method, _ in await requests_of(server, talk.id)] == ["session/set_model"]


async def test_an_agent_that_dies_of_a_model_keeps_nobody_waiting(bullpen: Bullpen, server: Server) -> None:
    await define_scripted(server, script={"on": {"session/set_model": ["exit code=7"]}})
    options = ("--agent", "scripted", "-C", str(server.workspace), "--model", "large")
    ran = await bullpen("run", "[[chunk x]]", *options)
    assert ran == (1, "", "bullpen: it ended with exit code 7\n")


async def test_send_waits_for_the_answer(bullpen: Bullpen, talk: SessionClient) -> None:
    assert await bullpen("send", "work", "[[chunk hello]]", "--wait") == (0, "hello\n", "")
    assert (await bullpen("send", "work", "[[wait_cancel]]")).out == "sent to work\n"
    await talk.wait_for_event("turn_start", after=10)
    assert (await bullpen("send", "work", "later")).out == "queued for work\n"
    assert (await bullpen("send", "work", "now", "--busy", "reject")).code == 1


async def test_how_something_ended_is_said_in_words(
    bullpen: Bullpen, talk: SessionClient, server: Server
) -> None:
    full = await bullpen("send", "work", """[[answer result='{"stopReason": "max_tokens"}']]""", "--wait")
    assert full == (1, "", "bullpen: the turn ended: it has used all its tokens\n")
    await server.call("POST", f"{talk.path}/complete", json={})
    shown = (await bullpen("show", "work")).out
    assert "completed (ended by a person)" in shown
    assert json.loads((await bullpen("show", "work", "--json")).out)["endReason"] == "user_request"


async def test_send_says_which_agent_it_starts_where_there_is_none(bullpen: Bullpen, server: Server) -> None:
    for title in ("shells", "others"):
        await server.new_terminal((await server.new_session(title=title))["id"])
    listed = (await server.call("GET", "/api/agents"))["agents"]
    default = next(each for each in listed if each["default"])
    sent = await bullpen("send", "shells", "hello")
    started = f"bullpen: shells had no agent; it now has {default['name']} ({default['id']})\n"
    assert sent == (0, "queued for shells\n", started)
    assert (await bullpen("send", "shells", "again")).err == ""
    told = json.loads((await bullpen("send", "others", "hello", "--json")).out)
    shown = json.loads((await bullpen("show", "others", "--json")).out)
    (agent,) = (each for each in shown["workers"] if each["type"] == "agent")
    assert (told["workerId"], told["agentId"]) == (agent["id"], default["id"])
    assert {"promptId", "seq", "queued"} <= set(told)


async def test_chat_says_which_agent_the_first_message_starts(bullpen: Bullpen, server: Server) -> None:
    await server.new_terminal((await server.new_session(title="shells"))["id"])
    listed = (await server.call("GET", "/api/agents"))["agents"]
    default = next(each for each in listed if each["default"])
    coming = f"it has no agent yet; your first message starts {default['name']} ({default['id']})\n"
    assert coming in (await bullpen("chat", "shells")).out
    await define_scripted(server)
    await SessionClient.begin(server, title="work")
    assert "no agent" not in (await bullpen("chat", "work")).out


async def test_what_is_said_may_come_on_standard_input(
    bullpen: Bullpen, server: Server, talk: SessionClient
) -> None:
    long = b"[[chunk hello]]" + b"\n a long line" * 20_000  # more than the system takes as one argument
    assert await bullpen("send", "work", "-", "--wait", stdin=long) == (0, "hello\n", "")
    where = ("--agent", "scripted", "-C", str(server.workspace))
    assert await bullpen("run", "-", *where, "--wait", stdin=b"[[chunk there]]") == (0, "there\n", "")
    await bullpen("queue", "pause", "work")
    assert (await bullpen("queue", "add", "work", "-", stdin=b"and the tests")).out == "queued\n"
    assert "and the tests" in (await bullpen("queue", "ls", "work")).out
    assert await bullpen("send", "work", "-", stdin=b"\xff") == (
        2,
        "",
        "bullpen: standard input is not UTF-8 text\n",
    )


async def test_an_empty_prompt_starts_no_session(bullpen: Bullpen, server: Server) -> None:
    for prompt in ("", "  ", "-"):
        refused = await bullpen("run", prompt, "-C", str(server.workspace))
        assert refused == (2, "", "bullpen: a message must not be empty\n")
    assert (await server.call("GET", "/api/sessions"))["sessions"] == []


async def test_send_passes_on_what_another_agent_answered(bullpen: Bullpen, talk: SessionClient) -> None:
    assert (
        await bullpen("worker", "add", "work", "--type", "agent", "--agent", "scripted", "--role", "critic")
    ).code == 0
    nothing = await bullpen("send", "work/critic", "--from", "scripted")
    assert (nothing.code, "has not answered anything yet" in nothing.err) == (1, True)
    assert (await bullpen("send", "work/scripted", "[[chunk 'it is green']]", "--wait")).code == 0
    heard = await bullpen("send", "work/critic", "is that so?", "--from", "scripted", "--wait")
    assert heard.out == "you said: is that so?\n\nThe last answer of scripted:\n\nit is green\n"


async def test_send_passes_on_what_another_agent_has_changed(bullpen: Bullpen, talk: SessionClient) -> None:
    unnamed = await bullpen("send", "work", "--what", "diff")
    assert (unnamed.code, "--from ROLE" in unnamed.err) == (2, True)
    session = await talk.server.call("GET", talk.path)
    repo = Repo(Path(session["locationPath"]))
    repo.write("new.txt", "fresh\n")
    heard = await bullpen("send", "work", "see", "--from", "scripted", "--what", "diff", "--wait")
    assert heard.out.startswith("you said: see\n\nWhat has changed in the workspace of scripted:\n\n1 file")
    assert "\n+fresh\n" in heard.out


async def test_logs_print_what_happened_to_an_agent(bullpen: Bullpen, talk: SessionClient) -> None:
    await talk.prompt("[[chunk hello]]")
    await talk.wait_for_event("turn_end")
    text = (await bullpen("logs", "work/scripted")).out
    assert "session start" not in text
    assert "hello" in text
    lines = (await bullpen("logs", "work/scripted", "--json", "--tail", "2")).out.splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["turn_end", "worker_activity"]


async def test_a_question_is_told_from_a_permission(bullpen: Bullpen, talk: SessionClient) -> None:
    asks = await bullpen("send", "work", "[[question 'Which port?']]", "--wait")
    assert asks.code == 3
    how = f"bullpen answer {talk.id[:8]}"
    assert asks.err.endswith(f"it asks: Which port?; answer with: {how}\n")
    wrong = await bullpen("approve", "work")
    assert wrong.code == 1
    assert f"asks a question, not for a permission: Which port?; answer it with: {how}" in wrong.err
    (item,) = json.loads((await bullpen("inbox", "--json")).out)["items"]
    assert (
        f"is not a permission; answer it with: {how}" in (await bullpen("inbox", "--allow", item["id"])).err
    )


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ({"title": "ls -l", "rawInput": {"command": "ls -l"}}, "ls -l"),
        ({"title": "List", "rawInput": {"command": "rm x"}}, 'List {"command":"rm x"}'),
        ({"kind": "edit"}, "edit"),
    ],
)
def test_a_tool_call_in_a_line_hides_nothing(call: dict[str, object], line: str) -> None:
    assert describe_call(call) == line


async def test_approve_lists_allows_and_denies(bullpen: Bullpen, talk: SessionClient) -> None:
    assert (await bullpen("approve", "work")).code == 1
    await talk.prompt(
        "[[permission title=delete]] [[chunk first]] [[permission title=again]] [[chunk second]]"
    )
    asked = await talk.wait_for_event("permission", status="pending")
    listed = await bullpen("approve", "work", "--list")
    assert "delete" in listed.out
    assert "yes" in listed.out
    assert (await bullpen("approve", "work", "--option", "maybe")).code == 2
    assert (await bullpen("approve", "work")).out.startswith("allowed: scripted: delete")
    await talk.wait_for_event("permission", status="selected", id=asked["data"]["id"], optionId="yes")
    second = await talk.wait_for_event("permission", after=asked["seq"], status="pending")
    assert (await bullpen("approve", "work", "--deny")).code == 0
    await talk.wait_for_event("permission", status="selected", id=second["data"]["id"], optionId="no")


async def test_resume_starts_an_agent_that_ended_and_leaves_one_that_lives_alone(
    bullpen: Bullpen, talk: SessionClient
) -> None:
    await talk.prompt("[[wait_cancel]]")
    await talk.wait_for_event("turn_start")
    left = await bullpen("resume", "work")
    assert (left.code, left.out) == (0, f"work is running; continue with: bullpen chat {talk.id[:8]}\n")
    assert left.err == "bullpen: resume is `bullpen restart --if-ended` here\n"
    assert (await bullpen("cancel", "work")).code == 0
    await talk.run_turn("[[exit code=7]]")
    ended = await talk.wait_for_event("worker_failed")
    assert (await bullpen("resume", "work")).out == "restarted work\n"
    await talk.wait_for_event("worker_ready", after=ended["seq"])


async def test_cancel_ends_the_turn(bullpen: Bullpen, talk: SessionClient) -> None:
    await talk.prompt("[[wait_cancel]]")
    await talk.wait_for_event("turn_start")
    assert (await bullpen("cancel", "work")).out == "cancelled the turn of work\n"
    assert (await talk.wait_for_event("turn_end"))["data"]["stopReason"] == "cancelled"


async def test_cancel_says_when_there_is_no_turn(bullpen: Bullpen, talk: SessionClient) -> None:
    assert await bullpen("send", "work", "[[chunk done]]", "--wait") == (0, "done\n", "")
    assert await bullpen("cancel", "work") == (0, "work has no turn to cancel\n", "")


async def test_the_queue_is_listed_paused_and_emptied(bullpen: Bullpen, talk: SessionClient) -> None:
    assert (await bullpen("queue", "pause", "work")).code == 0
    assert (await bullpen("queue", "add", "work", "first")).code == 0
    assert (await bullpen("queue", "add", "work", "second")).code == 0
    listed = (await bullpen("queue", "ls", "work")).out
    assert listed.index("first") < listed.index("second")
    assert "2 waiting, paused" in listed
    queue = json.loads((await bullpen("queue", "ls", "work", "--json")).out)
    first = queue["messages"][0]["id"]
    assert (await bullpen("queue", "rm", "work", first[:13])).code == 0
    assert (await bullpen("queue", "rm", "work", first)).code == 1
    assert (await bullpen("queue", "clear", "work")).code == 0
    assert "0 waiting" in (await bullpen("queue", "ls", "work")).out


async def test_the_list_of_agents_says_where_no_login_was_found_and_what_to_run(
    bullpen: Bullpen, server: Server
) -> None:
    body = {"name": "Mine", "kind": "acp", "command": [sys.executable], "loginCommand": ["mine", "log in"]}
    await server.call("PUT", "/api/agents/lacking", 200, json=body | {"login": {"env": ["NO_SUCH_KEY"]}})
    await server.call("PUT", "/api/agents/ready", 200, json=body | {"login": {"env": ["HOME"]}})
    rows = {line.split()[0]: line for line in (await bullpen("agents", "ls")).out.splitlines()}
    assert rows["lacking"].endswith("no login found  run: mine 'log in'")
    assert rows["ready"].split()[-3:] == ["installed", "logged", "in"]
    assert "not needed" in rows["demo"]
    listed = json.loads((await bullpen("agents", "ls", "--json")).out)["agents"]
    assert {each["id"]: each["loggedIn"] for each in listed}["lacking"] == "no"


async def test_agents_are_listed_and_tried(bullpen: Bullpen, server: Server) -> None:
    await define_scripted(server, "broken", {"start": ["exit code=7"]})
    listed = json.loads((await bullpen("agents", "ls", "--json")).out)["agents"]
    assert {"demo", "claude", "gemini", "broken"} <= {agent["id"] for agent in listed}
    assert "npm install" in (await bullpen("agents", "ls")).out
    works = await bullpen("agents", "test", "demo", "--directory", str(server.workspace))
    assert (works.code, f"demo works: Demo {__version__}, ready after" in works.out) == (0, True), works.out
    fails = await bullpen("agents", "test", "broken", "--directory", str(server.workspace))
    assert fails.code == 1
    assert "7" in fails.err
    assert (await bullpen("agents", "test", "nobody")).code == 1
    assert (await server.call("GET", "/api/sessions"))["total"] == 0


async def test_chat_streams_and_asks_in_the_terminal(tmux: Tmux, talk: SessionClient) -> None:
    await tmux.enter("bullpen chat work")
    await tmux.until("an empty line leaves")
    await tmux.enter("[[chunk hel]] [[chunk lo]] [[permission title=delete]] [[chunk than]] [[chunk ks]]")
    await tmux.until("hello")
    await tmux.until("3. Reject")
    await tmux.enter("9")
    await tmux.until("1 to 3, y, once, always or n?")
    await tmux.enter("1")
    await tmux.until("thanks")
    await talk.wait_for_event("permission", status="selected", optionId="yes")
    await tmux.enter("[[permission title=again]]")
    await tmux.until("scripted: again")
    await tmux.enter("reject")
    await talk.wait_for_event("permission", status="selected", optionId="no")
    await tmux.enter("[[chunk work]] [[chunk ing]] [[wait_cancel]]")
    await tmux.until("working")
    await tmux.type("C-c")
    await tmux.until("the turn ended: cancelled")
    await tmux.enter("")
    await tmux.until(lambda screen: screen.rstrip().endswith(PROMPT))


async def test_an_agent_in_a_terminal_is_sent_to_waited_for_and_attached_to(
    bullpen: Bullpen, server: Server, tmux: Tmux
) -> None:
    journal = await define_tui(server)
    talk = await TuiSessionClient.begin(server, title="work")
    code, _, err = await bullpen("send", "work", "[[work 0.3]] [[ask]]", "--wait")
    assert code == 3
    assert "Allow this? (y/n)" in err
    assert "bullpen attach" in err
    assert (await bullpen("wait", "work")).code == 3
    await tmux.enter("bullpen attach work")
    await tmux.until("Allow this")
    asked = await talk.wait_for_activity("asking")
    await tmux.type("y")
    await talk.wait_for_activity("idle", asked["seq"])
    assert (await bullpen("wait", "work", "--timeout", "60")).code == 0
    assert journal_of(journal, "answer") == ["y"]


@pytest.mark.parametrize(
    ("typed", "kind"),
    [("y", "allow_once"), ("once", "allow_once"), ("always", "allow_always"), ("n", "reject_once")],
)
def test_chat_takes_a_short_word_for_a_permission(typed: str, kind: str) -> None:
    kinds = ("allow_always", "reject_once", "allow_once")
    options = [{"optionId": f"o{number}", "name": each, "kind": each} for number, each in enumerate(kinds)]
    meant = match_option(options, typed)
    assert meant is not None and meant["kind"] == kind


async def test_chat_offers_short_words_when_it_does_not_understand(talk: SessionClient, tmux: Tmux) -> None:
    await tmux.enter("bullpen chat work")
    await tmux.until("an empty line leaves")
    await tmux.enter("[[permission title=delete]] [[chunk thanks]]")
    await tmux.until("\n?")
    await tmux.enter("perhaps")
    await tmux.until("y, once, always or n?")
    await tmux.enter("y")
    await tmux.until("thanks")
