"""Login signs: the path of a file in an environment, and the login status on each system."""

import pytest

from bullpen.domain.logins import LoginSigns, LoginStatus, login_status, sign_path


@pytest.mark.parametrize(
    ("file", "env", "path"),
    [
        ("~/.agent/auth.json", {"HOME": "/home/ada"}, "/home/ada/.agent/auth.json"),
        ("/etc/agent.json", {}, "/etc/agent.json"),
        ("${AT:-~/.agent}/auth.json", {"HOME": "/home/ada"}, "/home/ada/.agent/auth.json"),
        ("${AT:-~/.agent}/auth.json", {"HOME": "/home/ada", "AT": "/srv/x"}, "/srv/x/auth.json"),
        ("${AT:-~/.agent}/auth.json", {"HOME": "/home/ada", "AT": ""}, "/home/ada/.agent/auth.json"),
        ("${AT:-/var/agent}/auth.json", {}, "/var/agent/auth.json"),
    ],
)
def test_the_path_of_a_login_file_depends_on_the_environment(
    file: str, env: dict[str, str], path: str
) -> None:
    assert sign_path(file, env) == path


@pytest.mark.parametrize("env", [{}, {"HOME": ""}, {"HOME": "home"}])
def test_without_a_home_a_file_in_it_has_no_path(env: dict[str, str]) -> None:
    assert sign_path("~/.agent/auth.json", env) is None


def test_a_variable_with_a_relative_path_gives_no_path() -> None:
    assert sign_path("${AT:-~/.agent}/auth.json", {"HOME": "/home/ada", "AT": "here"}) is None


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_a_found_sign_means_a_login_on_every_system(system: str) -> None:
    assert login_status(LoginSigns(env=("KEY",), hidden=("linux", "macos")), True, system) is LoginStatus.YES


def test_a_missing_sign_means_no_login_unless_logins_are_hidden_on_the_system() -> None:
    signs = LoginSigns(env=("KEY",), hidden=("macos",))
    assert login_status(signs, False, "linux") is LoginStatus.NO
    assert login_status(signs, False, "darwin") is LoginStatus.UNKNOWN
    files = LoginSigns(files=("~/.key",), hidden=("linux",))
    assert login_status(files, False, "linux") is LoginStatus.UNKNOWN
    assert login_status(files, False, "darwin") is LoginStatus.NO


def test_without_signs_the_status_is_unknown_and_an_agent_that_needs_no_login_has_none() -> None:
    assert login_status(LoginSigns(), False, "linux") is LoginStatus.UNKNOWN
    assert login_status(LoginSigns(needed=False), False, "linux") is LoginStatus.NONE
