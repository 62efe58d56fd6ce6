"""Every place in the code that starts a process is known, and is sandboxed or has a reason not to be."""

import ast
from collections import Counter
from pathlib import Path

import bullpen

SOURCES = Path(bullpen.__file__).parent
STARTS = {
    *("create_subprocess_exec", "create_subprocess_shell", "Popen", "posix_spawn", "posix_spawnp", "system"),
    *("execv", "execve", "execvp", "execvpe", "execl", "execlp", "fork", "forkpty", "popen", "check_call"),
    *("check_output", "run_process", "start_git"),
}
OF_A_MODULE = {("subprocess", "run"), ("subprocess", "call"), ("os", "system"), ("children", "spawn")}

# Of programs that run what an agent or a repository decides: they come from `sandboxed_command`.
SANDBOXED = {
    "keeper/spawn.py": "runs what ChildHandles.spawn has wrapped",
    "workers/acp_agent.py": "passes a ChildSpec, which has a profile",
    "workers/terminal.py": "passes a ChildSpec, which has a profile",
    "sessions/worktree_setup.py": "the setup and cleanup commands",
    "sessions/titling.py": "the title command",
    "sandbox/limit_launcher.py": "runs the sandbox of a run, which was wrapped before",
    "sandbox/landlock_launcher.py": "restricts itself before it runs the program",
    "sandbox/proxy_bridge.py": "inside the sandbox of a sealed run",
    "sandbox/probe_program.py": "inside the sandbox that is tried",
}
# Of programs that neither an agent nor a repository chooses.
OWN = {
    "agents/demo/tool_runner.py": "inside the sandbox of the demo agent",
    "git/command.py": "git with a configuration and an environment of the server",
    "git/clone.py": "git, to clone into a new directory",
    "git/overlays.py": "git, to make the configuration of a repository",
    "git/run.py": "git with a configuration and an environment of the server",
    "keeper/__main__.py": "becomes a daemon",
    "keeper/client.py": "starts the keeper",
    "processes.py": "runs the commands of the modules above and below",
    "sandbox/mechanism.py": "tries whether bubblewrap works",
    "sandbox/probe_stage.py": "a process that the probes try to reach",
    "sandbox/probes.py": "the probes, at each level",
    "sessions/disk_watch.py": "a script that reads the sizes of files",
    "sessions/notifiers.py": "the notification command of the owner's settings",
    "sessions/trash.py": "cp, to move a worktree to another disk",
}


def test_every_start_of_a_process_is_listed() -> None:
    found = Counter(
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if path.relative_to(SOURCES).parts[0] not in ("cli", "client")  # programs that a user starts
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and starts_process(call)
    )
    assert set(found) == set(SANDBOXED) | set(OWN)


def test_only_one_module_asks_the_keeper_for_a_child() -> None:
    others = [path for path in SOURCES.rglob("*.py") if path.parent.name != "keeper"]
    assert [path.name for path in others if "keeper.spawn(" in path.read_text()] == ["children.py"]
    assert "sandboxed_command(spec.sandbox" in (SOURCES / "workers" / "children.py").read_text()


def starts_process(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(module), attr=name):
            return name in STARTS or (module, name) in OF_A_MODULE
        case ast.Attribute(value=ast.Attribute(attr=module), attr=name):
            return name in STARTS or (module, name) in OF_A_MODULE
        case ast.Name(name):
            return name in STARTS
    return False
