"""`bullpen sandbox`: grants, the level of workers, and the sandbox of this machine."""

from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient, define_scripted


async def test_a_host_and_a_path_are_allowed_listed_and_removed(bullpen: Bullpen, server: Server) -> None:
    shared = server.workspace / "shared"
    shared.mkdir()
    assert "nothing is allowed" in (await bullpen("sandbox", "ls")).out
    allowed = await bullpen("sandbox", "allow", ".example.org")
    assert allowed.out == "allowed: host .example.org\n"
    await bullpen("sandbox", "allow", "--write", str(shared))
    listed = (await bullpen("sandbox", "ls")).out
    assert ".example.org" in listed
    assert "write" in listed
    assert (await bullpen("sandbox", "rm", ".example.org")).out == "no longer allowed: host .example.org\n"
    assert ".example.org" not in (await bullpen("sandbox", "ls")).out


async def test_show_names_the_mechanism_and_what_each_agent_can_do(bullpen: Bullpen, server: Server) -> None:
    await define_scripted(server)
    client = await SessionClient.begin(server, title="fix it")
    await server.new_terminal(client.id)
    shown = (await bullpen("sandbox", "show", "fix it")).out
    assert "bubblewrap" in shown
    assert "scripted" in shown and "workspace" in shown
    assert "terminal" in shown and "open" in shown
    assert f"writes     {server.workspace}\n" in shown
    assert f"hidden     {server.home}\n" in shown
    assert "network    yours\n" in shown


async def test_show_and_doctor_name_the_limits_and_what_enforces_them(
    bullpen: Bullpen, server: Server
) -> None:
    server.set(BULLPEN_SANDBOX_MEMORY="12G", BULLPEN_SANDBOX_PROCESSES="300", BULLPEN_SANDBOX_DISK="0")
    await server.restart()
    by = (await server.call("GET", "/api/sandbox"))["limits"][0]["enforcedBy"]
    shown = (await bullpen("sandbox", "show")).out
    assert f"memory: 12 GiB ({by})" in shown and "disk: none" in shown
    checked = (await bullpen("doctor")).out
    assert f"memory: 12 GiB ({by}), processes: 300 (" in checked


async def test_ls_marks_an_agent_without_a_sandbox(bullpen: Bullpen, server: Server) -> None:
    await define_scripted(server)
    await SessionClient.begin(server, sandbox="open")
    assert "scripted [open]" in (await bullpen("ls")).out
