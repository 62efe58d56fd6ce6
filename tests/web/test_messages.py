"""`GET /api/sessions/{id}/messages`: the conversation as a list of messages."""

from support.server import Server
from support.session_client import SessionClient, define_scripted

UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"


async def test_a_cancelled_session_has_a_system_message_that_says_why(server: Server) -> None:
    session = await server.new_session()
    await server.call("DELETE", f"/api/sessions/{session['id']}", 200)
    (message,) = (await server.call("GET", f"/api/sessions/{session['id']}/messages"))["messages"]
    assert (message["role"], message["content"]["type"]) == ("system", "text")
    assert "cancelled" in message["content"]["text"]
    assert message["sessionId"] == session["id"]
    detail = await server.call("GET", f"/api/sessions/{session['id']}")
    assert detail["messages"] == [message]
    brief = await server.call("GET", f"/api/sessions/{session['id']}?brief=true")
    assert brief == {name: value for name, value in detail.items() if name in brief}
    assert detail.keys() - brief.keys() == {"repo", "worktree", "messages"}


async def test_since_selects_only_later_messages(server: Server) -> None:
    session = await server.new_session()
    await server.call("POST", f"/api/sessions/{session['id']}/complete", 200)
    path = f"/api/sessions/{session['id']}/messages"
    (message,) = (await server.call("GET", path))["messages"]
    earlier = (await server.call("GET", path, params={"since": session["createdAt"]}))["messages"]
    later = (await server.call("GET", path, params={"since": message["timestamp"]}))["messages"]
    assert (earlier, later) == ([message], [])


async def test_a_limit_selects_the_first_or_the_newest_messages(server: Server) -> None:
    await define_scripted(server)
    conversation = await SessionClient.begin(server)
    for word in ("one", "two"):
        await conversation.run_turn(f"[[chunk {word}]]")

    async def texts(query: str) -> list[str]:
        found = (await server.call("GET", f"{conversation.path}/messages?{query}"))["messages"]
        return [each["content"]["text"] for each in found]

    assert await texts("limit=2") == ["[[chunk one]]", "one"]
    assert await texts("limit=2&newest=true") == ["[[chunk two]]", "two"]


async def test_an_invalid_time_is_refused_and_an_unknown_session_is_not_found(server: Server) -> None:
    session = await server.new_session()
    refused = await server.call("GET", f"/api/sessions/{session['id']}/messages?since=yesterday", 400)
    assert refused["error"] == "invalid"
    assert (await server.call("GET", f"/api/sessions/{UNKNOWN_ID}/messages", 404))["error"] == "not_found"
