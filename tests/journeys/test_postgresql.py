"""A whole server with PostgreSQL: sessions, terminals and agents survive a kill."""

from pathlib import Path

from support.databases import Cluster
from support.server import Server
from support.session_client import SessionClient, define_scripted
from support.terminal_viewer import TerminalViewer, TerminalWriter


async def test_sessions_terminals_and_agents_survive_a_kill_on_postgresql(
    cluster: Cluster, tmp_path: Path, workspace: Path
) -> None:
    server = Server(tmp_path / "home", workspace, {"BULLPEN_DATABASE_URL": cluster.new_database()})
    await server.start()
    try:
        session = await server.new_session(title="on PostgreSQL")
        worker = await server.new_terminal(session["id"])
        writer = TerminalWriter(server, session["id"], worker["id"], "writer")
        viewer = TerminalViewer(server, session["id"], worker["id"])
        async with viewer.watching():
            await writer.type("echo $((40+2))\n")
            await viewer.until_seen(b"42\r\n")
            await server.restart()
            await writer.type("echo $((50+3))\n")
            await viewer.until_seen(b"53\r\n")
        after = await server.worker_in(session["id"], worker["id"], "active")
        assert after["pid"] == worker["pid"]
        await define_scripted(server)
        talk = await SessionClient.begin(server)
        await talk.run_turn("[[chunk hello from an agent]]")
        assert "hello from an agent" in await talk.agent_text()
        assert not (server.home / "bullpen.db").exists()
    finally:
        await server.close()
