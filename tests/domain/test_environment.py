"""What any program we start inherits."""

from bullpen.domain.environment import PERSONAL, inherited_environment

OURS = {
    "PATH": "/bin",
    "LC_TIME": "C",
    "https_proxy": "http://proxy",
    "SSH_AUTH_SOCK": "/run/agent",
    "EDITOR": "vi",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "BULLPEN_TOKEN": "secret",
}


def test_locale_and_proxy_pass_and_nothing_else() -> None:
    assert inherited_environment(OURS).keys() == {"PATH", "LC_TIME", "https_proxy"}


def test_what_a_person_runs_may_reach_the_keys_of_that_person() -> None:
    assert inherited_environment(OURS, PERSONAL).keys() == {"PATH", "LC_TIME", "https_proxy", "SSH_AUTH_SOCK"}


def test_our_own_secrets_never_pass() -> None:
    assert "BULLPEN_TOKEN" not in inherited_environment(OURS, ["BULLPEN_TOKEN"])
