"""Create what a request of docs/protocol.md needs: an agent, a question, a queued message."""

import sys
from typing import Any

from bullpen.agents.discovery import DEMO
from docs.protocol_page import Section
from support.listening_programs import serve_in_terminal
from support.ports import free_port
from support.server import Server
from support.session_client import SessionClient

DEMO_COMMAND = [sys.executable, "-m", "bullpen.agents.demo"]


async def prepare(server: Server, session_id: str, section: Section) -> dict[str, str]:  # noqa: PLR0911 (a table)
    """Create the prerequisites of the request. Return the values for the parameters of its path."""
    talk = SessionClient(server, {"id": session_id})
    if section.name == "GET /api/inbox":
        return await _ask(talk, "ask", "permission", "{pid}")
    if section.path.startswith("/api/rules"):
        return {"{rule}": await _add_rule(server, section.method)}
    if section.path == "/api/sandbox/grants/{id}":
        grant = {"kind": "host", "target": "example.org"}
        return {"{id}": (await server.call("PUT", "/api/sandbox/grants", 200, json=grant))["id"]}
    if section.path == "/api/clones/{id}":
        clone = await server.call("POST", "/api/clones", 201, json={"url": "http://127.0.0.1:1/cloned"})
        return {"{id}": clone["id"]}
    match section.path.removeprefix("/api/sessions/{id}").split("/")[1:]:
        case ["permissions", *_]:
            return await _ask(talk, "ask", "permission", "{pid}")
        case ["questions", *_]:
            return await _ask(talk, "question", "question", "{qid}")
        case ["ports"]:
            return {"{wid}": (await serve_in_terminal(server, session_id, free_port()))["id"]}
        case ["queue", *_]:
            return {"{mid}": await _queue_message(talk)}
        case ["restart"] | ["workers", "{wid}", "mode" | "model" | "options", *_]:
            return await _add_agent(talk, DEMO) | {"{oid}": "pace"}
        case ["workers", "{wid}", "login"] | ["api", "workers", "{wid}", "activity"]:
            return await _add_defined_agent(talk, section.path)
        case ["api", "workers", "{wid}", "questions", *_]:
            return await _add_agent_with_question(talk)
        case _:
            return {"{aid}": "mine"}


async def _add_agent(talk: SessionClient, agent_id: str) -> dict[str, str]:
    body: dict[str, Any] = {"type": "agent", "agentId": agent_id}
    worker = await talk.server.call("POST", f"{talk.path}/workers", 201, json=body)
    await talk.wait_for_event("agent_session")
    return {"{wid}": worker["id"]}


async def _add_agent_with_question(talk: SessionClient) -> dict[str, str]:
    """Add an agent that has asked a question outside of a turn."""
    worker = await _add_agent(talk, DEMO)
    path = f"/api/workers/{worker['{wid}']}/questions"
    question = await talk.server.call("POST", path, 201, json={"message": "why?"})
    return worker | {"{qid}": f"{question['id']}?seq={question['seq']}"}


async def _add_defined_agent(talk: SessionClient, path: str) -> dict[str, str]:
    """Define and add an agent with a login command, or a terminal agent for the activity route."""
    definition: dict[str, Any] = {"name": "Mine", "kind": "acp", "command": DEMO_COMMAND}
    definition |= {"loginCommand": ["true"]}
    if path.endswith("/activity"):
        definition = {"name": "Mine", "kind": "pty", "command": ["cat"]}
    await talk.server.call("PUT", "/api/agents/defined", 200, json=definition)
    body: dict[str, Any] = {"type": "agent", "agentId": "defined"}
    worker = await talk.server.call("POST", f"{talk.path}/workers", 201, json=body)
    await talk.server.worker_in(talk.id, worker["id"], "active")
    return {"{wid}": worker["id"]}


async def _ask(talk: SessionClient, prompt: str, type: str, parameter: str) -> dict[str, str]:
    await talk.prompt(prompt)
    event = await talk.wait_for_event(type, status="pending")
    return {parameter: event["data"]["id"]}


async def _add_rule(server: Server, method: str) -> str:
    """Return the name of the page's rule. Add the rule, except for the request that adds it."""
    rule = {"name": "reading", "agentId": "demo", "kind": "read", "answer": "allow"}
    await server.http.delete("/api/rules/reading")
    if method != "POST":
        await server.call("POST", "/api/rules", 201, json=rule)
    return rule["name"]


async def _queue_message(talk: SessionClient) -> str:
    await talk.server.call("POST", f"{talk.path}/queue/pause", 200)
    item = await talk.server.call("POST", f"{talk.path}/queue", 201, json={"message": "later"})
    message_id: str = item["id"]
    return message_id
