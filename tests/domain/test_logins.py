"""Signs of a login: where a file lies in an environment, and what signs come to on which system."""

import pytest

from bullpen.domain.logins import LoginSigns, LoginStatus, login_status, sign_path


@pytest.mark.parametrize(
    ("place", "env", "path"),
    [
        ("~/.agent/auth.json", {"HOME": "/home/ada"}, "/home/ada/.agent/auth.json"),
        ("/etc/agent.json", {}, "/etc/agent.json"),
        ("${AT:-~/.agent}/auth.json", {"HOME": "/home/ada"}, "/home/ada/.agent/auth.json"),
        ("${AT:-~/.agent}/auth.json", {"HOME": "/home/ada", "AT": "/srv/x"}, "/srv/x/auth.json"),
        ("${AT:-~/.agent}/auth.json", {"HOME": "/home/ada", "AT": ""}, "/home/ada/.agent/auth.json"),
        ("${AT:-/var/agent}/auth.json", {}, "/var/agent/auth.json"),
    ],
)
def test_a_file_lies_where_the_environment_says(place: str, env: dict[str, str], path: str) -> None:
    assert sign_path(place, env) == path


@pytest.mark.parametrize("env", [{}, {"HOME": ""}, {"HOME": "home"}])
def test_without_a_home_a_file_in_it_is_nowhere(env: dict[str, str]) -> None:
    assert sign_path("~/.agent/auth.json", env) is None


def test_a_variable_that_names_no_whole_path_leads_nowhere() -> None:
    assert sign_path("${AT:-~/.agent}/auth.json", {"HOME": "/home/ada", "AT": "here"}) is None


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_a_sign_is_a_login_on_every_system(system: str) -> None:
    assert login_status(LoginSigns(env=("KEY",), hidden=("linux", "macos")), True, system) is LoginStatus.YES


def test_without_a_sign_there_is_no_login_where_one_would_be_seen() -> None:
    signs = LoginSigns(env=("KEY",), hidden=("macos",))
    assert login_status(signs, False, "linux") is LoginStatus.NO
    assert login_status(signs, False, "darwin") is LoginStatus.UNKNOWN
    files = LoginSigns(files=("~/.key",), hidden=("linux",))
    assert login_status(files, False, "linux") is LoginStatus.UNKNOWN
    assert login_status(files, False, "darwin") is LoginStatus.NO


def test_who_names_no_signs_leaves_it_open_and_who_needs_no_login_has_none_to_lack() -> None:
    assert login_status(LoginSigns(), False, "linux") is LoginStatus.UNKNOWN
    assert login_status(LoginSigns(needed=False), False, "linux") is LoginStatus.NONE
