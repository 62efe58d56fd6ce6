"""Cloning from a URL: which URLs are accepted, and that a clone runs no program."""

from pathlib import Path

import pytest

from bullpen.domain.errors import Invalid, RemoteFault
from bullpen.git.clone import check_url, clone_repository, directory_name
from support.git_http_server import git_http_server

pytestmark = pytest.mark.usefixtures("confined")  # as in a server


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.org/team/project.git", "project"),
        (" http://127.0.0.1:8000/project ", "project"),
        ("ssh://git@example.org:22/project.git/", "project"),
        ("git@example.org:team/my.project.git", "my.project"),
        ("git@example.org:project", "project"),
    ],
)
def test_the_directory_of_a_clone_has_the_name_of_the_repository(url: str, name: str) -> None:
    assert directory_name(check_url(url)) == name


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch% /tmp/x",
        "file:///srv/project",
        "/srv/project",
        "--upload-pack=touch x",
        "ssh://-oProxyCommand=touch/x",
        "git@host:-oProxyCommand=touch",
        "git://example.org/project",
        "https://example.org/a b",
        "https://me:secret@example.org/project",
        "https://[::1/project",
        "",
        "https://example.org/" + "x" * 2000,
    ],
)
def test_an_address_that_is_no_url_of_a_repository_is_refused(url: str) -> None:
    with pytest.raises(Invalid):
        check_url(url)


@pytest.mark.parametrize("url", ["https://example.org/..", "https://example.org/x/.git", "git@host:.git"])
def test_an_address_without_the_name_of_a_repository_is_refused(url: str) -> None:
    with pytest.raises(Invalid):
        directory_name(url)


async def test_a_clone_takes_no_hook_and_no_program_from_the_configuration_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, hooks = tmp_path / "user", tmp_path / "hooks"
    for directory in (home, hooks, tmp_path / "clone"):
        directory.mkdir()
    hook = hooks / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\n")
    hook.chmod(0o755)
    template = f"[core]\n\thooksPath = {hooks}\n[init]\n\ttemplateDir = {hooks}\n"
    (home / ".gitconfig").write_text(template)
    monkeypatch.setenv("HOME", str(home))
    lines: list[str] = []
    with git_http_server(tmp_path / "remote") as remote:
        await clone_repository(f"{remote.url}/project.git", tmp_path / "clone", lines.append, "marker-1")
    assert (tmp_path / "clone/readme.txt").read_text() == "hello\n"
    assert not (tmp_path / "canary").exists()
    assert not (tmp_path / "clone/.git/hooks").exists()
    assert any("Cloning into" in line for line in lines)


async def test_a_repository_that_needs_a_login_or_does_not_exist_fails_in_one_sentence(
    tmp_path: Path,
) -> None:
    with git_http_server(tmp_path / "remote") as remote:
        with pytest.raises(RemoteFault, match=r"private\.git needs a login; use its ssh address"):
            await clone_repository(f"{remote.url}/private.git", tmp_path / "a", lambda _: None, "marker-2")
        with pytest.raises(RemoteFault, match=r"git clone failed: repository '.*gone.git/' not found"):
            await clone_repository(f"{remote.url}/gone.git", tmp_path / "b", lambda _: None, "marker-3")
    assert not (tmp_path / "a").exists()
