"""The methods for definitions, options, logins and queues of agents, on a real server."""

from datetime import UTC, datetime

import msgspec
import pytest

from bullpen.agents.definitions import builtin
from bullpen.client import (
    Client,
    Permission,
    PermissionOption,
    PromptSource,
    ToolCallContent,
    ToolCallLocation,
)
from bullpen.domain.agents import AgentDefinition
from bullpen.domain.errors import Conflict, NotFound
from support.server import Server
from support.session_client import SessionClient, define_scripted


async def test_an_agent_is_defined_replaced_and_removed(client: Client) -> None:
    mine = AgentDefinition(id="mine", name="Mine", kind="pty", command=("cat",), env={"A": "b"})
    added = await client.add_agent(mine)
    assert (added.id, added.command, added.installed) == ("mine", ["cat"], True)
    with pytest.raises(Conflict):
        await client.add_agent(mine)
    replaced = await client.replace_agent(msgspec.structs.replace(builtin()["demo"], id="mine", name="Other"))
    assert (replaced.name, replaced.kind) == ("Other", "acp")
    await client.remove_agent("mine")
    assert "mine" not in {each.id for each in await client.agents()}
    with pytest.raises(NotFound):
        await client.remove_agent("mine")


async def test_an_option_is_set_and_a_login_is_started(client: Client, server: Server) -> None:
    option = {"id": "effort", "name": "Effort", "type": "select", "currentValue": "low"}
    option["options"] = [{"value": each, "name": each} for each in ("low", "high")]  # type: ignore[assignment]
    script = {"agent": {"session": {"configOptions": [option]}}}
    await define_scripted(server, script=script, loginCommand=["sh", "-c", "echo log in here; cat"])
    talk = await SessionClient.begin(server)
    (agent,) = (await client.session(talk.id)).workers
    await client.set_option(talk.id, agent.id, "effort", "high")
    await talk.wait_for_event("request_answered")
    terminal = await client.log_in_agent(talk.id, agent.id)
    assert terminal.has_terminal
    await server.worker_in(talk.id, terminal.id, "active")


async def test_a_queued_message_is_read_moved_and_its_queue_configured(
    client: Client, server: Server
) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    await client.pause_queue(talk.id)
    first = await client.enqueue(talk.id, "one", title="first")
    second = await client.enqueue(talk.id, "two", scheduled_time=datetime(2100, 1, 1, tzinfo=UTC))
    assert (await client.queued(talk.id, first.id)).title == "first"
    moved = await client.move_queued(talk.id, second.id, "up")
    assert [each.id for each in moved.messages] == [second.id, first.id]
    before = await client.queue_settings(talk.id)
    assert before.inherited
    changed = await client.change_queue_settings(talk.id, max_size=3)
    assert (changed.max_size, changed.enabled, changed.inherited) == (3, before.enabled, False)
    assert await client.change_queue_settings(talk.id, inherited=True) == before


async def test_a_prompt_includes_the_answer_of_another_worker(client: Client, server: Server) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    await talk.run_turn("[[chunk 'it is green']]")
    critic = await client.add_worker(talk.id, "agent", agent_id="scripted", role="critic")
    await client.prompt(talk.id, "so?", worker_id=critic.id, source=PromptSource(role="scripted"))
    expected = "so?\n\nThe last answer of scripted:\n\nit is green"
    assert (await talk.wait_for_event("user_prompt", text=expected))["workerId"] == critic.id


async def test_a_permission_of_an_agent_has_typed_values(client: Client, server: Server) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    diff = '{"type": "diff", "path": "a", "oldText": "x", "newText": "y"}'
    about = f"""content='[{diff}]' locations='[{{"path": "a"}}]'"""
    call = f"[[tool toolCallId=c title=edit kind=edit status=pending {about}]]"
    await talk.prompt(f"{call} [[permission id=c title=edit announce=false]]")
    await talk.wait_for_event("permission", status="pending")
    (permission,) = await client.permissions(talk.id)
    assert permission.options[0] == PermissionOption(option_id="yes", name="Allow", kind="allow_once")
    assert (permission.tool_call.title, permission.tool_call.tool_call_id) == ("edit", "c")
    assert permission.tool_call.content == [
        ToolCallContent(type="diff", path="a", old_text="x", new_text="y")
    ]
    assert permission.tool_call.locations == [ToolCallLocation(path="a")]
    (item,) = await client.inbox()
    assert (item.tool_call, item.options) == (permission.tool_call, permission.options)
    await client.answer_permission(talk.id, permission.id, permission.options[0].option_id)
    await talk.wait_for_event("turn_end")


def test_a_field_with_an_unexpected_type_has_its_default() -> None:
    sent = b"""{"id": "p", "workerId": "w", "role": "r",
        "toolCall": {
            "title": 7, "kind": "edit", "locations": "here", "content": ["x", {"type": "diff", "path": 1}]
        },
        "options": [{"optionId": "a", "name": null, "_meta": {}}, "b", {"name": "c"}]}"""
    permission = msgspec.json.decode(sent, type=Permission)
    assert permission.options == [PermissionOption(option_id="a"), PermissionOption(name="c")]
    call = permission.tool_call
    assert (call.title, call.kind, call.locations) == ("", "edit", [])
    assert call.content == [ToolCallContent(type="diff")]
    assert msgspec.json.decode(msgspec.json.encode(permission))["options"][0]["_meta"] == {}
