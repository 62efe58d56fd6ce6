"""With an overlay, git works on a repository without reading the repository's configuration."""

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bullpen.domain.errors import Conflict, RemoteFault
from bullpen.git.changes import read_loss, read_status
from bullpen.git.diff import read_diff
from bullpen.git.git_directories import GitDirectories
from bullpen.git.overlays import MAX_CONFIG, OVERLAYS, Overlays
from bullpen.git.run import run_git
from bullpen.git.worktrees import (
    add_worktree,
    branch_head,
    create_branch,
    delete_branch,
    discard_worktree,
    find_worktree,
    list_worktrees,
)
from support.repositories import ENVIRONMENT, Repo

pytestmark = pytest.mark.usefixtures("confined")  # as in a server

REFTABLE = subprocess.run(
    ["git", "init", "-q", "--ref-format=reftable", "/dev/null/x"], capture_output=True, text=True, check=False
)
FORMATS = [["--object-format=sha1"], ["--object-format=sha256"]]
if "unknown option" not in REFTABLE.stderr:  # git 2.45 and later
    FORMATS.append(["--ref-format=reftable"])


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home directory of the server's user."""
    home = tmp_path / "user"
    (home / ".config" / "git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return home


async def create_worktree(repo: Repo, branch: str, place: GitDirectories | None = None) -> GitDirectories:
    place = place or repo.git_directories
    path = place.work_tree.with_name(branch)
    path.mkdir()
    await create_branch(place, branch, repo.git("rev-parse", "HEAD").strip())
    await add_worktree(place, path, branch)
    return (await find_worktree(place, branch)).git_dirs


@pytest.mark.parametrize("options", FORMATS, ids=lambda options: options[0])
async def test_every_format_of_repository_works(tmp_path: Path, options: list[str]) -> None:
    path = tmp_path / "other"
    subprocess.run(["git", "init", "-q", "-b", "main", *options, path], env=ENVIRONMENT, check=True)
    repo = Repo(path)  # initialising again changes nothing
    place = await create_worktree(repo, "topic")
    (place.work_tree / "readme.txt").write_text("changed\n")
    assert [file.path for file in (await read_diff(place)).files] == ["readme.txt"]
    assert (await read_loss(place, "topic")).changes == [" M readme.txt"]
    assert [each.branch for each in await list_worktrees(repo.git_directories)] == ["main", "topic"]
    assert repo.git("status", "--porcelain", cwd=place.work_tree) == " M readme.txt\n"


async def test_a_new_worktree_names_the_repository_and_not_the_overlay(repo: Repo) -> None:
    place = await create_worktree(repo, "topic")
    assert (place.work_tree / ".git").read_text() == f"gitdir: {repo.git_dir}/worktrees/topic\n"
    assert repo.git("rev-parse", "--git-common-dir", cwd=place.work_tree).strip() == str(repo.git_dir)
    overlay = await OVERLAYS.prepare(repo.git_directories)
    written = [file for file in place.git_dir.rglob("*") if file.is_file()]
    assert not [file for file in written if str(overlay).encode() in file.read_bytes()]


async def test_a_discarded_worktree_leaves_the_git_directory_as_it_was(repo: Repo) -> None:
    before = sorted(os.listdir(repo.git_dir))
    path = (await create_worktree(repo, "topic")).work_tree
    await discard_worktree(repo.git_directories, path)
    assert not path.exists()
    assert sorted(os.listdir(repo.git_dir)) == before


async def test_a_worktree_that_still_names_the_overlay_can_be_discarded(repo: Repo) -> None:
    """A server that is killed while it creates a worktree leaves such a worktree."""
    place = await create_worktree(repo, "topic")
    overlay = await OVERLAYS.prepare(repo.git_directories)
    (place.work_tree / ".git").write_text(f"gitdir: {overlay}/worktrees/topic\n")
    await discard_worktree(repo.git_directories, place.work_tree)
    assert not place.git_dir.exists()
    assert not place.work_tree.exists()


async def test_a_branch_that_is_checked_out_is_refused_with_the_path_of_the_work_tree(repo: Repo) -> None:
    with pytest.raises(Conflict, match=f"main is checked out in {repo.path} already"):
        await add_worktree(repo.git_directories, repo.path.with_name("again"), "main")


async def test_a_worktree_of_a_sparse_repository_is_sparse_for_the_server_and_for_git(repo: Repo) -> None:
    repo.write("wanted/a.txt", "a\n")
    repo.write("unwanted/b.txt", "b\n")
    repo.commit("two directories")
    repo.git("sparse-checkout", "set", "wanted")
    assert (await read_status(repo.git_directories)).changes == []
    place = await create_worktree(repo, "topic")
    assert sorted(os.listdir(place.work_tree)) == [".git", "readme.txt", "wanted"]
    assert (await read_status(place)).changes == []
    assert repo.git("config", "core.sparseCheckout", cwd=place.work_tree) == "true\n"
    repo.git("checkout", "-q", "--detach", cwd=place.work_tree)
    assert sorted(os.listdir(place.work_tree)) == [".git", "readme.txt", "wanted"]


async def test_a_worktree_of_a_bare_repository_works(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    bare = tmp_path / "project" / ".bare"
    repo.git("clone", "-q", "--bare", str(repo.path), str(bare))
    (bare.parent / ".git").write_text("gitdir: ./.bare\n")
    place = await create_worktree(repo, "topic", GitDirectories.main(bare, bare.parent))
    assert (await read_status(place)).changes == []
    path = bare.parent.with_name("main")
    path.mkdir()
    await add_worktree(
        GitDirectories.main(bare, bare.parent), path, "main"
    )  # a bare repository has no branch checked out


async def test_objects_of_another_repository_are_found(repo: Repo, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    repo.git("clone", "-q", "--shared", str(repo.path), str(shared))
    (shared / ".git/objects/info/alternates").write_text("../../../repo/.git/objects\n")
    assert (await read_status(GitDirectories.main(shared / ".git", shared))).changes == []


async def test_a_shallow_clone_is_read_up_to_its_boundary(repo: Repo, tmp_path: Path) -> None:
    repo.commit("second")
    shallow = tmp_path / "shallow"
    repo.git("clone", "-q", "--depth=1", f"file://{repo.path}", str(shallow))
    result = await run_git(GitDirectories.main(shallow / ".git", shallow), "log", "--format=%s")
    assert result.output == b"second\n"


async def test_commits_ahead_and_behind_of_the_upstream_are_counted(repo: Repo, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    repo.git("clone", "-q", str(repo.path), str(clone))
    repo.commit("theirs")
    repo.git("fetch", "-q", cwd=clone)
    repo.commit("ours", cwd=clone)
    repo.commit("ours too", cwd=clone)
    status = await read_status(GitDirectories.main(clone / ".git", clone))
    assert (status.ahead, status.behind) == (2, 1)


@pytest.mark.parametrize("level", ["user", "repository"])
async def test_line_endings_are_converted_as_the_user_or_the_repository_configured(
    repo: Repo, user: Path, level: str
) -> None:
    file = user / ".gitconfig" if level == "user" else repo.git_dir / "config"
    with file.open("a") as config:
        config.write("[core]\n\tautocrlf = true\n")
    place = await create_worktree(repo, "topic")
    assert (place.work_tree / "readme.txt").read_bytes() == b"hello\r\n"
    assert (await read_status(place)).changes == []


async def test_files_that_the_user_or_the_repository_excludes_are_not_listed(repo: Repo, user: Path) -> None:
    (user / "more").write_text("[core]\n\texcludesFile = ~/ignored\n")
    (user / ".gitconfig").write_text("[include]\n\tpath = more\n")
    (user / "ignored").write_text("by-user\n")
    (repo.git_dir / "info" / "exclude").write_text("by-repository\n")
    for name in ("by-user", "by-repository", "new"):
        repo.write(name, "x")
    assert (await read_diff(repo.git_directories)).untracked == ["new"]


async def test_the_default_excludes_file_of_the_user_is_read(repo: Repo, user: Path) -> None:
    (user / ".config/git/ignore").write_text("by-user\n")
    repo.write("by-user", "x")
    assert (await read_status(repo.git_directories)).changes == []


async def test_a_changed_setting_is_used_by_the_next_call(repo: Repo) -> None:
    (repo.path / "readme.txt").chmod(0o755)
    assert (await read_status(repo.git_directories)).changes == [(" M", "readme.txt")]
    repo.git("config", "core.fileMode", "false")
    assert (await read_status(repo.git_directories)).changes == []


async def test_a_setting_of_one_worktree_does_not_reach_another(repo: Repo) -> None:
    place = repo.add_worktree("topic")
    repo.git("config", "extensions.worktreeConfig", "true")
    repo.git("config", "--worktree", "core.fileMode", "false", cwd=place.work_tree)
    for each in (repo.git_directories, place):
        (each.work_tree / "readme.txt").chmod(0o755)
    assert (await read_status(place)).changes == []
    assert (await read_status(repo.git_directories)).changes == [(" M", "readme.txt")]


async def test_packed_refs_are_replaced_in_the_repository_and_not_in_the_overlay(repo: Repo) -> None:
    for name in ("one", "two"):
        repo.git("branch", name)
    repo.git("pack-refs", "--all")
    head = repo.git("rev-parse", "HEAD").strip()
    await delete_branch(repo.git_directories, "one", head)
    assert repo.git("for-each-ref", "--format=%(refname:short)").split() == ["main", "two"]
    assert "refs/heads/one" not in (repo.git_dir / "packed-refs").read_text()
    assert (await OVERLAYS.prepare(repo.git_directories) / "packed-refs").is_symlink()


async def test_refs_stay_correct_while_an_agent_packs_them(repo: Repo) -> None:
    head = repo.git("rev-parse", "HEAD").strip()
    place = repo.add_worktree("topic")
    work = "git pack-refs --all --prune; git branch -f theirs; git branch -D theirs"
    agent = subprocess.Popen(
        ["sh", "-c", f"while test ! -e stop; do {work}; done >/dev/null 2>&1"], cwd=repo.path, env=ENVIRONMENT
    )
    try:
        for number in range(20):
            await _repeat_while_locked(create_branch, repo.git_directories, f"kept-{number}", head)
            await _repeat_while_locked(create_branch, place, f"gone-{number}", head)
            await _repeat_while_locked(delete_branch, place, f"gone-{number}", head)
    finally:
        (repo.path / "stop").touch()
        agent.wait(60)
    names = repo.git("for-each-ref", "--format=%(refname:short)", "refs/heads/kept-*", "refs/heads/gone-*")
    assert set(names.split()) == {f"kept-{number}" for number in range(20)}
    assert await branch_head(repo.git_directories, "kept-19") == head


async def _repeat_while_locked(change: Callable[..., Awaitable[None]], *arguments: object) -> None:
    """Repeat the change while a lock of the agent's git prevents it."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await change(*arguments)
            except (Conflict, RemoteFault) as error:
                if "lock" not in str(error):
                    raise


async def test_a_configuration_that_cannot_be_read_is_reported_with_its_path(repo: Repo) -> None:
    config = repo.git_dir / "config"
    config.write_text("[core\n")
    with pytest.raises(RemoteFault, match=r"repo/\.git/config cannot be read: bad config line 1"):
        await read_status(repo.git_directories)
    config.write_bytes(b"#" * (MAX_CONFIG + 1))
    with pytest.raises(RemoteFault, match="is larger than 4 MiB"):
        await read_status(repo.git_directories)
    config.unlink()
    os.mkfifo(config)
    with pytest.raises(RemoteFault, match="is not a file"):
        await read_status(repo.git_directories)


async def test_a_repository_or_a_user_without_a_configuration_is_accepted(repo: Repo, user: Path) -> None:
    (user / ".gitconfig").symlink_to("/dev/null")
    (repo.git_dir / "config").unlink()
    assert (await read_status(repo.git_directories)).changes == []


async def test_an_overlay_is_private_rebuilt_when_damaged_and_removed_with_its_worktree(
    repo: Repo, tmp_path: Path
) -> None:
    overlays, directory = Overlays(), tmp_path / "overlays"
    overlays.keep_in(directory)
    place = repo.add_worktree("topic")
    kept, removed = await overlays.prepare(repo.git_directories), await overlays.prepare(place)
    assert {path.parent for path in (kept, removed)} == {directory}
    assert [path.stat().st_mode & 0o777 for path in (kept, kept / "config")] == [0o700, 0o600]
    (kept / "config").unlink()
    assert (await overlays.prepare(repo.git_directories) / "config").exists()
    repo.git("worktree", "remove", str(place.work_tree))
    Overlays().keep_in(directory)
    assert list(directory.iterdir()) == [kept]
