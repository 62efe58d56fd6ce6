"""`bullpen inbox` lists and answers what waits; `bullpen rules` answers permissions automatically."""

import json
from pathlib import Path

from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient, define_scripted
from support.tmux import Tmux


async def test_two_sessions_are_answered_from_the_inbox(server: Server, bullpen: Bullpen) -> None:
    await define_scripted(server)
    talks = [await SessionClient.begin(server, title=f"talk {n}") for n in range(2)]
    for talk in talks:
        await talk.prompt("[[permission]]")
    first, second = [(await talk.open_permission())["id"] for talk in talks]
    listed = json.loads((await bullpen("inbox", "--json")).out)["items"]
    assert {item["id"] for item in listed} == {first, second}
    await bullpen("inbox", "--allow", first)
    await bullpen("inbox", "--deny", second)
    answers = [
        (await talk.wait_for_event("permission", status="selected"))["data"]["optionId"] for talk in talks
    ]
    assert answers == ["yes", "no"]
    end = await talks[0].wait_for_event("turn_end")
    await talks[1].wait_for_event("turn_end")
    assert "finished" in (await bullpen("inbox")).out
    left = (await bullpen("inbox", "--seen", f"{talks[0].id}.{end['seq']}")).out
    assert "talk 1" in left
    assert "talk 0" not in left


async def test_the_inbox_says_what_to_do_with_its_items(server: Server, tmux: Tmux) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    await talk.run_turn("[[chunk done]]")
    await tmux.enter("bullpen inbox")
    seen = await tmux.until("take off the list: bullpen inbox --seen ID")
    assert "--allow" not in seen
    await talk.prompt("[[permission]]")
    await talk.open_permission()
    await tmux.enter("bullpen inbox")
    await tmux.until("allow or refuse:   bullpen inbox --allow ID, or --deny ID")


async def test_rules_are_added_listed_and_removed(server: Server, bullpen: Bullpen) -> None:
    assert "every permission asks you" in (await bullpen("rules", "ls")).out
    await bullpen("rules", "add", "reading", "--agent", "demo", "--kind", "read")
    assert "reading" in (await bullpen("rules", "ls")).out
    await bullpen("rules", "rm", "reading")
    assert "every permission asks you" in (await bullpen("rules", "ls")).out


async def test_what_the_sandbox_refused_is_listed_until_it_is_allowed_or_seen(
    bullpen: Bullpen, server: Server, tmp_path: Path
) -> None:
    await define_scripted(server)
    client = await SessionClient.begin(server)
    for name in ("a", "b"):
        params = json.dumps({"path": str(tmp_path / name)})
        await client.run_turn(f"[[ask method=fs/read_text_file 'params={params}']]")
    assert f"Scripted may not read {tmp_path}/b" in (await bullpen("inbox")).out
    await bullpen("sandbox", "allow", str(tmp_path / "a"))
    items = json.loads((await bullpen("inbox", "--json")).out)["items"]
    (left,) = [item for item in items if item["kind"] == "refused"]
    assert left["refused"] == {"kind": "read", "target": str(tmp_path / "b")}
    assert "may not read" not in (await bullpen("inbox", "--seen", left["id"])).out
