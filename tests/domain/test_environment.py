"""The environment variables that a child inherits from the server."""

from bullpen.domain.environment import PERSONAL, inherited_environment

SERVER_ENVIRONMENT = {
    "PATH": "/bin",
    "LC_TIME": "C",
    "https_proxy": "http://proxy",
    "SSH_AUTH_SOCK": "/run/agent",
    "EDITOR": "vi",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "BULLPEN_TOKEN": "secret",
}


def test_a_child_inherits_only_path_locale_and_proxy() -> None:
    assert inherited_environment(SERVER_ENVIRONMENT).keys() == {"PATH", "LC_TIME", "https_proxy"}


def test_a_program_of_the_user_inherits_the_ssh_agent() -> None:
    assert inherited_environment(SERVER_ENVIRONMENT, PERSONAL).keys() == {
        "PATH",
        "LC_TIME",
        "https_proxy",
        "SSH_AUTH_SOCK",
    }


def test_the_secrets_of_bullpen_are_never_inherited() -> None:
    assert "BULLPEN_TOKEN" not in inherited_environment(SERVER_ENVIRONMENT, ["BULLPEN_TOKEN"])
