"""The verbs that prompt, answer, queue for and list agents, used by a script and by a user."""

import json
import re
import sys
from pathlib import Path

import pytest

from bullpen import __version__
from bullpen.cli.approve import describe_call
from bullpen.cli.chat import match_option
from bullpen.client import PermissionOption, ToolCall
from support.commands import Bullpen
from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted
from support.tmux import PROMPT, Tmux
from support.tui_session_client import TuiSessionClient, define_tui, journal_of
from web.clients import new_token


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


async def test_a_waiting_run_prints_the_answer_as_it_comes(server: Server, tmux: Tmux) -> None:
    await define_scripted(server)
    await tmux.enter(f"cd {server.workspace} && clear")
    prompt = "[[chunk first]] [[tool title=look]] [[wait_cancel]]"
    await tmux.enter(f"bullpen run '{prompt}' --agent scripted --wait")
    shown = await tmux.until("· look\n")
    # The terminal may show the typed line a second time, when the shell was ready to read it.
    assert shown[shown.rindex("--wait") :].splitlines()[1:3] == ["first", "· look"]
    await tmux.type("C-c")
    (session,) = (await server.call("GET", "/api/sessions"))["sessions"]
    id = session["id"][:8]
    said = f"bullpen: the agent keeps working; follow it: bullpen logs -f {id}; stop it: bullpen cancel {id}"
    shown = await tmux.until(f"stop it: bullpen cancel {id}", "-J")
    assert said in shown
    await tmux.enter("echo code-$?")
    await tmux.until("code-130")
    assert (await server.call("GET", f"/api/sessions/{session['id']}"))["workers"][0]["activity"] == "active"


async def test_run_names_the_session_after_its_prompt(bullpen: Bullpen, server: Server) -> None:
    await define_scripted(server)
    target = ("--agent", "scripted", "-C", str(server.workspace))
    for prompt, options in (("[[chunk x]] tidy up. Then rest.", ()), ("[[chunk y]]", ("--name", "second"))):
        assert (await bullpen("run", prompt, *target, *options)).code == 0
    titles = {each["title"] for each in (await server.call("GET", "/api/sessions"))["sessions"]}
    assert titles == {"[[chunk x]] tidy up.", "second"}


async def test_ls_counts_sessions_that_failed_in_the_last_day(bullpen: Bullpen, server: Server) -> None:
    await define_scripted(server)
    target = ("--agent", "scripted", "-C", str(server.workspace))
    assert (await bullpen("run", "[[crash]]", *target, "--wait")).code == 1
    assert (await bullpen("ls")).out == "1 failed in the last day; see: bullpen ls -a\n"
    assert (await bullpen("ls", "-q")).out == ""
    assert "[[crash]]" in (await bullpen("ls", "-a")).out


async def test_a_failed_turn_is_listed_until_a_turn_succeeds(bullpen: Bullpen, talk: SessionClient) -> None:
    reason = "the turn failed: the model is overloaded"
    await talk.run_turn("[[error text='the model is overloaded']]")
    assert f"  error: Scripted: {reason}  " in (await bullpen("ls")).out
    assert reason in (await bullpen("show", "work")).out
    waiting = (await bullpen("inbox")).out
    assert (waiting.splitlines()[1].split()[0], reason in waiting) == ("failed", True)
    assert await bullpen("wait", "work") == (1, f"scripted: {reason}\n", "")
    await talk.run_turn("[[chunk better]]")
    assert "  done, not seen yet  " in (await bullpen("ls")).out
    assert (await bullpen("wait", "work")).code == 0


async def test_wait_does_not_send_a_request_for_every_event(
    bullpen: Bullpen, talk: SessionClient, server: Server
) -> None:
    async def count_answers() -> int:
        metrics = (await server.http.get("/metrics")).text
        return int(float(re.search(r'http_answers_total{status="200"} (\S+)', metrics)[1]))  # type: ignore[index]

    await talk.prompt("[[sleep 2]] " + "[[tool]] [[sleep 0.02]] " * 100)
    before = await count_answers()
    assert (await bullpen("wait", "work")).code == 0
    assert len(await talk.tool_statuses()) == 100
    assert await count_answers() - before < 50


async def test_finished_sessions_that_no_user_has_seen_are_listed_before_working_ones(
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
    status = await bullpen("status")
    assert (status.code, "  ◆ done  done, not seen yet · " in status.out) == (3, True), status.out
    assert "◆ done, not seen yet" in (await bullpen("show", "done")).out
    counts = json.loads((await bullpen("status", "--json")).out)["sessions"]
    assert counts == {"needs input": 1, "done": 1, "working": 1, "idle": 1}


async def test_a_delegate_that_may_not_see_the_inbox_lists_its_sessions(
    bullpen: Bullpen, server: Server
) -> None:
    await define_scripted(server)
    bullpen.env["BULLPEN_TOKEN"] = (await new_token(server, "delegate"))["token"]
    target = ("--agent", "scripted", "-C", str(server.workspace), "--name", "mine", "--wait")
    assert (await bullpen("run", "[[chunk x]]", *target)).code == 0
    assert "mine" in (await bullpen("ls")).out


async def test_an_answer_printed_in_a_terminal_counts_as_seen(
    bullpen: Bullpen, talk: SessionClient, tmux: Tmux
) -> None:
    async def inbox_items() -> list[dict[str, str]]:
        items: list[dict[str, str]] = json.loads((await bullpen("inbox", "--json")).out)["items"]
        return items

    assert (await bullpen("send", "work", "[[chunk hello]]", "--wait")).out == "hello\n"
    assert [each["kind"] for each in await inbox_items()] == ["finished"]  # a script has read it, not a user
    await tmux.enter("bullpen send work '[[chunk hello]] [[chunk again]]' --wait; echo over")
    await tmux.until("helloagain\nover")
    assert await inbox_items() == []
    await tmux.enter("bullpen chat work")
    await tmux.until("an empty line leaves")
    await tmux.enter("[[chunk third]] [[chunk time]]")
    await tmux.until("thirdtime")
    await tmux.until(lambda screen: screen.rstrip().endswith("\n>"))
    assert await inbox_items() == []


async def test_run_with_an_agent_that_is_not_installed_names_the_install_command_and_leaves_no_session(
    bullpen: Bullpen, server: Server
) -> None:
    body = {"name": "Ghost", "kind": "acp", "command": ["no-such-program"], "install": "summon ghost"}
    await server.call("PUT", "/api/agents/ghost", 200, json=body)
    reason = "Ghost is not installed (no-such-program is not on the path); to install it, run: summon ghost"
    done = await bullpen("run", "x", "--agent", "ghost", "-C", str(server.workspace), "--wait")
    assert done == (1, "", f"bullpen: {reason}\n")
    assert (await bullpen("inbox")).out == "nothing waits for you\n"
    assert (await bullpen("ls", "-a", "-q")).out == ""
    order = {"agentId": "ghost", "locationPath": str(server.workspace)}
    refused = await server.call("POST", "/api/sessions", 409, json=order)
    assert refused["message"] == reason
    unknown = await bullpen("run", "x", "--agent", "missing", "-C", str(server.workspace))
    assert unknown.code == 2


async def requests_to_agent(server: Server, session_id: str) -> list[tuple[str, object]]:
    """Return the settings and prompts that were sent to the agent, in order."""
    page = await server.call("GET", f"/api/sessions/{session_id}/events?types=request_sent")
    sent = [(each["data"]["method"], each["data"].get("params")) for each in page["events"]]
    return [each for each in sent if each[0].startswith(("session/set", "session/prompt"))]


async def test_a_model_and_a_mode_are_set_before_the_prompt(bullpen: Bullpen, server: Server) -> None:
    await define_scripted(server)
    options = ("--agent", "scripted", "-C", str(server.workspace), "--model", "large", "--mode", "plan")
    ran = await bullpen("run", "[[chunk x]]", "-d", "-q", *options)
    assert (ran.code, ran.err) == (0, "")
    requests = await requests_to_agent(server, ran.out.strip())
    assert requests[:2] == [
        ("session/set_model", {"modelId": "large"}),
        ("session/set_mode", {"modeId": "plan"}),
    ]
    assert [method for method, _ in requests[2:]] == ["session/prompt"]
    sent = await bullpen("send", ran.out.strip(), "[[chunk y]]", "--model", "small", "--wait")
    assert sent == (0, "y\n", "")
    after = (await requests_to_agent(server, ran.out.strip()))[3:]
    assert (after[0], after[1][0]) == (("session/set_model", {"modelId": "small"}), "session/prompt")
    created = await bullpen("new", str(server.workspace), "-q", "--agent", "scripted", "--model", "tiny")
    assert await requests_to_agent(server, created.out.strip()) == [
        ("session/set_model", {"modelId": "tiny"})
    ]


async def test_a_model_that_the_agent_refuses_is_reported_and_leaves_no_session(
    bullpen: Bullpen, server: Server
) -> None:
    models = {"currentModelId": "big", "availableModels": [{"modelId": "big"}, {"modelId": "small"}]}
    script = {
        "on": {"session/set_model": ["error 'no such model'"]},
        "agent": {"session": {"models": models}},
    }
    await define_scripted(server, script=script)
    target = ("--agent", "scripted", "--model", "huge")
    reason = "bullpen: the agent refuses the model huge: no such model; it has big, small\n"
    assert await bullpen("run", "[[chunk x]]", "-C", str(server.workspace), *target) == (1, "", reason)
    assert await bullpen("new", str(server.workspace), *target) == (1, "", reason)
    assert (await server.call("GET", "/api/sessions"))["sessions"] == []
    talk = await SessionClient.begin(server, title="work")
    assert await bullpen("send", "work", "[[chunk x]]", "--model", "huge") == (1, "", reason)
    assert [method for method, _ in await requests_to_agent(server, talk.id)] == ["session/set_model"]


async def test_run_does_not_wait_for_an_agent_that_exits_when_its_model_is_set(
    bullpen: Bullpen, server: Server
) -> None:
    await define_scripted(server, script={"on": {"session/set_model": ["exit code=7"]}})
    options = ("--agent", "scripted", "-C", str(server.workspace), "--model", "large")
    ran = await bullpen("run", "[[chunk x]]", *options)
    assert ran == (1, "", "bullpen: it crashed (exit code 7)\n")


async def test_send_waits_for_the_answer(bullpen: Bullpen, talk: SessionClient) -> None:
    assert await bullpen("send", "work", "[[chunk hello]]", "--wait") == (0, "hello\n", "")
    assert (await bullpen("send", "work", "[[wait_cancel]]")).out == "sent to work\n"
    await talk.wait_for_event("turn_start", after=10)
    assert (await bullpen("send", "work", "later")).out == "queued for work\n"
    assert (await bullpen("send", "work", "now", "--busy", "reject")).code == 1


async def test_the_reason_of_an_end_is_printed_in_words(
    bullpen: Bullpen, talk: SessionClient, server: Server
) -> None:
    done = await bullpen("send", "work", """[[answer result='{"stopReason": "max_tokens"}']]""", "--wait")
    assert done == (1, "", "bullpen: the turn ended: it reached its token limit\n")
    await server.call("POST", f"{talk.path}/complete", json={})
    shown = (await bullpen("show", "work")).out
    assert "completed (ended by a person)" in shown
    assert json.loads((await bullpen("show", "work", "--json")).out)["endReason"] == "user_request"


async def test_send_names_the_agent_it_starts_in_a_session_without_one(
    bullpen: Bullpen, server: Server
) -> None:
    for title in ("shells", "others"):
        await server.new_terminal((await server.new_session(title=title))["id"])
    listed = (await server.call("GET", "/api/agents"))["agents"]
    default = next(each for each in listed if each["default"])
    sent = await bullpen("send", "shells", "hello")
    started = f"bullpen: shells had no agent; it now has {default['name']} ({default['id']})\n"
    assert sent == (0, "queued for shells\n", started)
    assert (await bullpen("send", "shells", "again")).err == ""
    sent_json = json.loads((await bullpen("send", "others", "hello", "--json")).out)
    shown = json.loads((await bullpen("show", "others", "--json")).out)
    (agent,) = (each for each in shown["workers"] if each["type"] == "agent")
    assert (sent_json["workerId"], sent_json["agentId"]) == (agent["id"], default["id"])
    assert {"promptId", "seq", "queued"} <= set(sent_json)


async def test_chat_names_the_agent_that_the_first_message_starts(bullpen: Bullpen, server: Server) -> None:
    await server.new_terminal((await server.new_session(title="shells"))["id"])
    listed = (await server.call("GET", "/api/agents"))["agents"]
    default = next(each for each in listed if each["default"])
    notice = f"it has no agent yet; your first message starts {default['name']} ({default['id']})\n"
    assert notice in (await bullpen("chat", "shells")).out
    await define_scripted(server)
    await SessionClient.begin(server, title="work")
    assert "no agent" not in (await bullpen("chat", "work")).out


async def test_a_message_can_be_read_from_standard_input(
    bullpen: Bullpen, server: Server, talk: SessionClient
) -> None:
    long = b"[[chunk hello]]" + b"\n a long line" * 20_000  # longer than the system allows for one argument
    assert await bullpen("send", "work", "-", "--wait", stdin=long) == (0, "hello\n", "")
    target = ("--agent", "scripted", "-C", str(server.workspace))
    assert await bullpen("run", "-", *target, "--wait", stdin=b"[[chunk there]]") == (0, "there\n", "")
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


async def test_send_forwards_the_last_answer_of_another_agent(bullpen: Bullpen, talk: SessionClient) -> None:
    assert (
        await bullpen("worker", "add", "work", "--type", "agent", "--agent", "scripted", "--role", "critic")
    ).code == 0
    nothing = await bullpen("send", "work/critic", "--from", "scripted")
    assert (nothing.code, "has not answered anything yet" in nothing.err) == (1, True)
    assert (await bullpen("send", "work/scripted", "[[chunk 'it is green']]", "--wait")).code == 0
    done = await bullpen("send", "work/critic", "is that so?", "--from", "scripted", "--wait")
    assert done.out == "you said: is that so?\n\nThe last answer of scripted:\n\nit is green\n"


async def test_send_forwards_the_changes_of_another_agent(bullpen: Bullpen, talk: SessionClient) -> None:
    unnamed = await bullpen("send", "work", "--what", "diff")
    assert (unnamed.code, "--from ROLE" in unnamed.err) == (2, True)
    session = await talk.server.call("GET", talk.path)
    repo = Repo(Path(session["locationPath"]))
    repo.write("new.txt", "fresh\n")
    done = await bullpen("send", "work", "see", "--from", "scripted", "--what", "diff", "--wait")
    assert done.out.startswith("you said: see\n\nWhat has changed in the workspace of scripted:\n\n1 file")
    assert "\n+fresh\n" in done.out


async def test_logs_print_the_conversation_of_an_agent(bullpen: Bullpen, talk: SessionClient) -> None:
    call = "[[tool toolCallId=t title=look status=pending]] [[tool_update toolCallId=t status=completed]]"
    await talk.run_turn(f"[[chunk 'one\x1b[2J']] {call} [[chunk two]]")
    text = (await bullpen("logs", "work/scripted")).out
    assert "## owner asks\n\n[[chunk" in text
    assert text.endswith("\n## scripted says\n\none�[2J\n\n- **look** completed\n\n## scripted says\n\ntwo\n")
    assert (await bullpen("logs", "work/scripted", "-n", "1")).out == "two\n"
    assert (await bullpen("logs", "work")).out.startswith("\n# work\n")
    assert "work" not in text.splitlines()[1]


async def test_logs_print_the_events_of_an_agent(bullpen: Bullpen, talk: SessionClient) -> None:
    await talk.prompt("[[chunk hello]]")
    await talk.wait_for_event("turn_end")
    text = (await bullpen("logs", "work/scripted", "--events")).out
    assert "session start" not in text
    assert "turn end" in text
    assert "hello" in text
    lines = (await bullpen("logs", "work/scripted", "--json", "--tail", "2")).out.splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["turn_end", "worker_activity"]


async def test_a_question_is_not_treated_as_a_permission(bullpen: Bullpen, talk: SessionClient) -> None:
    asks = await bullpen("send", "work", "[[question 'Which port?']]", "--wait")
    assert asks.code == 3
    command = f"bullpen answer {talk.id[:8]}"
    assert asks.err.endswith(f"it asks: Which port?; answer with: {command}\n")
    refused = await bullpen("approve", "work")
    assert refused.code == 1
    assert f"asks a question, not for a permission: Which port?; answer it with: {command}" in refused.err
    (item,) = json.loads((await bullpen("inbox", "--json")).out)["items"]
    assert (
        f"is not a permission; answer it with: {command}"
        in (await bullpen("inbox", "--allow", item["id"])).err
    )


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (ToolCall(title="ls -l", raw_input={"command": "ls -l"}), "ls -l"),
        (ToolCall(title="List", raw_input={"command": "rm x"}), 'List {"command":"rm x"}'),
        (ToolCall(kind="edit"), "edit"),
    ],
)
def test_the_line_of_a_tool_call_shows_its_whole_input(call: ToolCall, line: str) -> None:
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


async def test_resume_starts_an_agent_that_ended_and_does_not_restart_a_running_one(
    bullpen: Bullpen, talk: SessionClient
) -> None:
    await talk.prompt("[[wait_cancel]]")
    await talk.wait_for_event("turn_start")
    left = await bullpen("resume", "work")
    assert (left.code, left.out) == (0, f"work is running; continue with: bullpen chat {talk.id[:8]}\n")
    assert left.err == "bullpen: resume is `bullpen restart --if-ended` here\n"
    assert (await bullpen("cancel", "work")).code == 0
    await talk.wait_for_event("turn_end")
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


async def test_the_list_of_agents_shows_missing_logins_and_the_login_command(
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
    assert (await bullpen("agents", "test", "missing")).code == 1
    assert (await server.call("GET", "/api/sessions"))["total"] == 0


async def test_chat_streams_answers_and_asks_for_permissions(tmux: Tmux, talk: SessionClient) -> None:
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


async def test_send_wait_and_attach_work_with_a_terminal_agent(
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
def test_chat_accepts_a_short_word_for_a_permission(typed: str, kind: str) -> None:
    kinds = ("allow_always", "reject_once", "allow_once")
    options = [
        PermissionOption(option_id=f"o{number}", name=each, kind=each) for number, each in enumerate(kinds)
    ]
    option = match_option(options, typed)
    assert option is not None and option.kind == kind


async def test_chat_names_the_short_words_after_an_unknown_answer(talk: SessionClient, tmux: Tmux) -> None:
    await tmux.enter("bullpen chat work")
    await tmux.until("an empty line leaves")
    await tmux.enter("[[permission title=delete]] [[chunk thanks]]")
    await tmux.until("\n?")
    await tmux.enter("perhaps")
    await tmux.until("y, once, always or n?")
    await tmux.enter("y")
    await tmux.until("thanks")
