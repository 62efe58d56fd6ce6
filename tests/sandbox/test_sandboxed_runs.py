"""Programs in a sandbox: what they can do, and what they cannot."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.sandbox.processes import signal_program
from support.repositories import Repo
from support.sandboxed_runs import SandboxedRuns


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))


@pytest.fixture(params=["bubblewrap", "landlock"])
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> SandboxedRuns:
    return SandboxedRuns(tmp_path, request.param)


@pytest.fixture
def bubblewrap(tmp_path: Path) -> SandboxedRuns:
    return SandboxedRuns(tmp_path)


DENIED: dict[str, Callable[[SandboxedRuns], str]] = {
    "the owner's token": lambda runs: f"cat {runs.data}/token",
    "a key of the user": lambda runs: f"cat {runs.home}/.ssh/id_ed25519",
    "another workspace": lambda runs: f"cat {runs.other}/secret",
    "the environment of another process": lambda _: f"cat /proc/{os.getpid()}/environ",
    "a signal to another process": lambda _: f"kill -0 {os.getpid()}",
}
DENIED_TO_ROOT: dict[str, Callable[[SandboxedRuns], str]] = {
    "passwords of the system": lambda _: "grep root /etc/shadow",
    "a mount": lambda _: "mkdir -p mnt && mount -t tmpfs none mnt && umount mnt",
    "a change of the kernel's settings": lambda _: "echo 60 > /proc/sys/vm/swappiness",
    "capabilities": lambda _: "grep -v 'CapEff:.0000000000000000' /proc/self/status | grep CapEff",
}


if os.geteuid() == 0:  # other users may not do this without a sandbox either
    DENIED |= DENIED_TO_ROOT


@pytest.mark.parametrize("what", DENIED)
def test_a_run_is_denied(runs: SandboxedRuns, what: str) -> None:
    script = DENIED[what](runs)
    assert runs.run(script, "open").returncode == 0, "what is impossible without a sandbox proves nothing"
    assert runs.run(script).returncode != 0


def test_what_a_run_writes_outside_its_workspace_is_refused_or_lost(runs: SandboxedRuns) -> None:
    paths = [runs.home / ".bashrc", runs.home / ".profile", runs.other / "secret", runs.data / "token"]
    before = [path.read_text() if path.exists() else None for path in paths]
    for path in paths:
        runs.run(f"mkdir -p {path.parent}; echo evil >> {path}; rm -f {path}; ln -s /etc/passwd {path}")
    assert [path.read_text() if path.exists() else None for path in paths] == before


@pytest.mark.parametrize(
    "script",
    [
        "touch file && mv file renamed && mkdir -p a/b && ln -s a link && rm -r a",
        "echo x > ~/.agent/state && cat ~/.agent/state",
        'f=$(mktemp) && echo x > "$f"',
        "python3 -c 'import subprocess; subprocess.run([\"true\"], check=True)'",
        "echo x > /dev/null && head -c 1 /dev/urandom > /dev/null",
        "git --version && ls /usr/bin > /dev/null",
    ],
)
def test_a_run_can_work(runs: SandboxedRuns, script: str) -> None:
    done = runs.run(script)
    assert done.returncode == 0, done.stderr


def test_a_run_finds_its_temporary_directory_if_the_user_has_another_one(runs: SandboxedRuns) -> None:
    own = runs.home / "tmp"
    own.mkdir()
    runs.env |= {"TMPDIR": str(own), "TMP": str(own), "TEMP": str(own)}
    done = runs.run('f=$(mktemp) && echo x > "$f" && test "$TMPDIR" = "$TMP" && echo "$f"')
    assert done.returncode == 0, done.stderr
    assert not done.stdout.startswith(str(own))
    assert list(own.iterdir()) == []


def test_runs_keep_a_cache_of_their_own_and_shells_of_the_user_read_none_of_it(runs: SandboxedRuns) -> None:
    """Some shells run files of ~/.cache when they start."""
    cache = runs.home / ".cache"
    (cache / "pip").mkdir(parents=True)
    assert (
        runs.run("echo evil > ~/.cache/p10k-instant-prompt-ada.zsh; echo x > ~/.cache/pip/y").returncode == 0
    )
    assert [path.name for path in cache.rglob("*")] == ["pip", "y"]
    assert runs.run("mkdir -p ${XDG_CACHE_HOME:-~/.cache}/tool && echo x > $_/file").returncode == 0
    assert runs.run("cat ${XDG_CACHE_HOME:-~/.cache}/tool/file").stdout == "x\n"
    assert not (cache / "tool").exists()


def test_the_runs_of_a_session_share_a_temporary_directory(bubblewrap: SandboxedRuns) -> None:
    assert bubblewrap.run("echo hello > /tmp/a").returncode == 0
    assert bubblewrap.run("cat /var/tmp/a").stdout == "hello\n"
    assert not Path("/tmp/a").exists()


def test_a_program_that_ends_by_a_signal_ends_the_run_with_128_and_its_number(
    bubblewrap: SandboxedRuns,
) -> None:
    assert bubblewrap.run("kill -TERM $$").returncode == 128 + 15
    assert bubblewrap.run("exit 3").returncode == 3


def test_a_group_signal_reaches_the_program_and_not_bubblewrap(bubblewrap: SandboxedRuns) -> None:
    done = bubblewrap.run("trap 'exit 7' TERM; kill -TERM 0; sleep 5")
    assert done.returncode == 7


WORK = """set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
echo change > file; git add file; git commit -qm change
git checkout -q -b topic; echo more > file; git commit -qam more; git checkout -q -
git rebase -q topic; git branch -d topic 2>/dev/null; echo again > file; git stash -q; git stash pop -q
git fsck; git gc --auto"""


def test_git_works_in_a_main_work_tree_but_its_configuration_stays(bubblewrap: SandboxedRuns) -> None:
    repository = Repo(bubblewrap.workspace)
    config = (repository.git_dir / "config").read_bytes()
    done = bubblewrap.run(WORK)
    assert done.returncode == 0, done.stderr
    assert repository.git("log", "--format=%s").split() == ["more", "change", "first"]
    for attempt in (
        "git config core.fsmonitor /bin/evil",
        "echo evil > .git/hooks/post-checkout",
        "mv .git elsewhere",
        "rm -rf .git/hooks",
        "cp .git/config new && mv -f new .git/config",
        "ln -f file .git/config",
    ):
        assert bubblewrap.run(attempt).returncode != 0, attempt
    assert (repository.git_dir / "config").read_bytes() == config
    assert not (repository.git_dir / "hooks/post-checkout").exists()


def test_git_works_in_a_linked_worktree_but_nothing_else_of_the_repository(
    bubblewrap: SandboxedRuns,
) -> None:
    repository = Repo(bubblewrap.other)
    bubblewrap.workspace.rmdir()
    repository.git("worktree", "add", "-q", "-b", "linked", str(bubblewrap.workspace))
    repository.git("worktree", "add", "-q", "-b", "sibling", str(bubblewrap.home / "work/sibling"))
    config, head = (repository.git_dir / "config").read_bytes(), (repository.git_dir / "HEAD").read_bytes()
    done = bubblewrap.run(WORK)
    assert done.returncode == 0, done.stderr
    assert repository.git("log", "--format=%s", "linked").split() == ["more", "change", "first"]
    common = repository.git_dir
    for attempt in (
        "git config core.fsmonitor /bin/evil",
        f"echo evil > {common}/hooks/post-checkout",
        f"echo evil > {common}/HEAD",
        f"echo evil > {common}/index",
        f"rm -rf {common}/worktrees/sibling",
        f"echo x > {common}/worktrees/sibling/HEAD",
        f"mv {common}/worktrees {common}/w",
        f"echo x > {common}/worktrees/project/gitdir",
        "echo 'gitdir: /elsewhere' > .git",
        f"cat {repository.path}/readme.txt",
    ):
        assert bubblewrap.run(attempt).returncode != 0, attempt
    assert (repository.git_dir / "config").read_bytes() == config
    assert (repository.git_dir / "HEAD").read_bytes() == head
    assert repository.git("status", "--porcelain") == ""


def test_a_submodule_works_but_its_configuration_stays(bubblewrap: SandboxedRuns) -> None:
    repository, inner = Repo(bubblewrap.workspace), Repo(bubblewrap.other)
    repository.git("submodule", "--quiet", "add", str(inner.path), "lib/sub")
    repository.commit("submodule")
    config = repository.git_dir / "modules/lib/sub/config"
    before = config.read_bytes()
    done = bubblewrap.run(f"cd lib/sub\n{WORK}")
    assert done.returncode == 0, done.stderr
    for attempt in (
        "git -C lib/sub config core.fsmonitor /bin/evil",
        "mv .git/modules .git/elsewhere",
        "mv .git/modules/lib .git/elsewhere",
        "mv .git/modules/lib/sub .git/elsewhere",
    ):
        assert bubblewrap.run(attempt).returncode != 0, attempt
    assert config.read_bytes() == before


def test_a_run_in_a_main_work_tree_cannot_lead_a_linked_one_to_another_configuration(
    bubblewrap: SandboxedRuns,
) -> None:
    repository = Repo(bubblewrap.workspace)
    repository.git("worktree", "add", "-q", "-b", "linked", str(bubblewrap.other / "linked"))
    admin = repository.git_dir / "worktrees/linked"
    for attempt in (
        f"echo ../../evil > {admin}/commondir",
        f"echo /elsewhere/.git > {admin}/gitdir",
        f"mv {admin} {admin}.old",
        f"mv {admin.parent} {admin.parent}.old",
    ):
        assert bubblewrap.run(attempt).returncode != 0, attempt
    assert bubblewrap.run(f"echo x > {admin}/ORIG_HEAD && git worktree add -q own").returncode == 0
    assert (admin / "commondir").read_text() == "../..\n"


def test_a_worktree_configuration_that_git_reads_cannot_be_written(bubblewrap: SandboxedRuns) -> None:
    repository = Repo(bubblewrap.workspace)
    repository.git("config", "extensions.worktreeConfig", "true")
    assert bubblewrap.run("echo evil > .git/config.worktree").returncode != 0
    assert bubblewrap.run("git status").returncode == 0


def test_a_program_that_left_the_group_of_bubblewrap_gets_signals_too(bubblewrap: SandboxedRuns) -> None:
    program = (
        "import os, signal, sys, time; os.setpgid(0, 0); "
        "signal.signal(signal.SIGHUP, lambda *_: sys.exit(7)); print('ready', flush=True); time.sleep(60)"
    )
    with bubblewrap.start(["python3", "-c", program]) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        os.killpg(started.pid, signal.SIGHUP)  # as the keeper does; it does not reach the program
        signal_program(started.pid, signal.SIGHUP)
        assert started.wait(30) == 7


def test_a_program_in_the_group_of_bubblewrap_is_not_signalled_twice(bubblewrap: SandboxedRuns) -> None:
    with bubblewrap.start(["sh", "-c", "echo ready; sleep 1; exit 3"]) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        signal_program(started.pid, signal.SIGTERM)
        assert started.wait(30) == 3
