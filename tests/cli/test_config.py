"""`bullpen config`: the settings, their sources and their values in the running server, and their changes."""

import asyncio
import json
import re
import tomllib
from pathlib import Path

import pytest

from bullpen.cli.config_edit import with_setting, without_setting
from support.commands import Bullpen
from support.server import Server
from support.tmux import Tmux

FILE = """# How many agents
max_sessions = 9  # at most
allowed_hosts = [
  "a.example",  # redact = 1
]

[[rules]]
name = "tests"
"""


async def test_config_says_where_each_value_comes_from(
    bullpen_without_server: Bullpen, tmp_path: Path
) -> None:
    bullpen_without_server.env |= {"BULLPEN_PORT": "8123", "BULLPEN_TOKEN": "very-secret"}
    file = tmp_path / ".config" / "bullpen" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("max_sessions = 9\n")
    done = await bullpen_without_server("config", "--json")
    settings = json.loads(done.out)["settings"]
    assert settings["port"] == {"value": 8123, "source": "environment"}
    assert settings["max_sessions"] == {"value": 9, "source": str(file)}
    assert settings["host"] == {"value": "127.0.0.1", "source": "default"}
    shown = await bullpen_without_server("config")
    assert "8123" in shown.out
    assert "very-secret" not in done.out + shown.out


async def test_an_unknown_setting_is_named_with_the_most_similar_setting(
    bullpen_without_server: Bullpen, tmp_path: Path
) -> None:
    file = tmp_path / ".config" / "bullpen" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("prot = 1\n")
    done = await bullpen_without_server("ls")
    assert done.code == 2
    assert "did you mean port?" in done.err


@pytest.mark.own_server
async def test_config_shows_the_values_of_the_running_server_in_eighty_columns(
    server: Server, bullpen: Bullpen, tmux: Tmux
) -> None:
    assert "The running server uses the same values.\n" in (await bullpen("config")).out
    bullpen.env["AGENT_MAX_SESSIONS"] = "9"
    other = (await bullpen("config")).out
    assert re.search(r"^\* +max_sessions +9 +environment$", other, re.MULTILINE)
    assert re.search(r"^max_sessions +5 +default$", other, re.MULTILINE)
    report = json.loads((await bullpen("config", "--json")).out)
    assert (report["settings"]["max_sessions"]["value"], report["running"]["max_sessions"]["value"]) == (9, 5)
    assert report["running"]["token"]["value"] == "(hidden)"
    tmux.resize(80, 60)  # the terminal gets the new size a moment later
    resized = "until [ \"$(stty size)\" = '60 80' ]; do :; done"
    await tmux.enter(f"{resized}; bullpen config; echo over-$((40 + 2))")
    shown = await tmux.until("\nover-42\n")
    assert "SETTING" in shown, shown
    listed = [line.split()[0] for line in shown[shown.index("SETTING") :].split("\n\n")[0].splitlines()]
    assert listed == ["SETTING", *report["settings"]]  # one line for each setting, so none was wrapped
    await server.stop()
    assert "No running server could be asked" in (await bullpen("config")).out


async def test_config_shows_the_settings_although_the_server_does_not_answer(
    bullpen_without_server: Bullpen,
) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        bullpen_without_server.env |= {"BULLPEN_URL": url, "BULLPEN_TOKEN": "any"}
        shown = await bullpen_without_server("config")
    assert (shown.code, "SETTING" in shown.out) == (0, True), shown
    assert "No running server could be asked" in shown.out


async def test_a_setting_is_written_into_the_file_and_removed_from_it(
    bullpen_without_server: Bullpen, tmp_path: Path
) -> None:
    file = tmp_path / ".config" / "bullpen" / "config.toml"
    done = await bullpen_without_server("config", "set", "max-sessions", "20")
    assert done.out.splitlines() == [
        "max_sessions is 20 (~/.config/bullpen/config.toml).",
        "The server uses it from its next start on.",
    ]
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("max_sessions = 20\n", 0o600)
    rules = '[{"name": "r", "agentId": "demo", "kind": "read", "answer": "allow"}]'
    values = {
        "notify_command": ("notify-send 'an agent'", ["notify-send", "an agent"]),
        "workspace_root": (f"{tmp_path}/a:{tmp_path}/b", [f"{tmp_path}/a", f"{tmp_path}/b"]),
        "queue_enabled": ("no", False),
        "token": ('secret-\\-"-\u00e9', "(hidden)"),
        "rules": (rules, None),
    }
    for name, (text, shown) in values.items():
        assert (await bullpen_without_server("config", "set", name, "-", stdin=text.encode())).code == 0
        setting = json.loads((await bullpen_without_server("config", "--json")).out)["settings"][name]
        assert setting["source"] == str(file)
        assert shown in (setting["value"], None)
    assert tomllib.loads(file.read_text())["token"] == 'secret-\\-"-\u00e9'
    for name in (*values, "max_sessions"):
        assert (await bullpen_without_server("config", "unset", name)).code == 0
    assert file.read_text() == ""
    assert (
        "max_sessions is 5 (default).\n"
        in (await bullpen_without_server("config", "unset", "max_sessions")).out
    )


async def test_a_wrong_change_of_the_file_is_refused_and_changes_nothing(
    bullpen_without_server: Bullpen, tmp_path: Path
) -> None:
    file = tmp_path / ".config" / "bullpen" / "config.toml"
    for arguments, sentence in (
        (("set", "prot", "1"), "there is no setting prot; did you mean port?"),
        (("set", "port", "many"), "port must be a whole number from 0 to 65535"),
        (("set", "log_level", "inof"), "did you mean info?"),
        (("unset", "prot"), "did you mean port?"),
    ):
        done = await bullpen_without_server("config", *arguments)
        assert (done.code, sentence in done.err) == (2, True), done
    assert not file.exists()


@pytest.mark.own_server
async def test_a_change_of_the_file_says_when_the_running_server_uses_it(
    server: Server, bullpen: Bullpen
) -> None:
    async def change(*arguments: str) -> list[str]:
        return (await bullpen("config", *arguments)).out.splitlines()

    file = "(~/.config/bullpen/config.toml)."
    assert await change("set", "max_sessions", "9") == [
        f"max_sessions is 9 {file}",
        "The running server uses 5 until it is restarted.",
    ]
    assert (await change("unset", "max_sessions"))[1] == "The running server uses this value."
    assert (await change("set", "token", "another"))[1:] == [
        "Environment has priority over ~/.config/bullpen/config.toml.",
        "The running server uses (hidden), from its environment, until it is restarted.",
    ]
    assert (await change("set", "log_level", "debug"))[1] == "The running server uses it now."
    assert (await server.call("GET", "/api/settings"))["logLevel"] == "debug"
    assert "The running server uses the same values.\n" in (await bullpen("config")).out


def test_a_change_keeps_comments_and_other_lines() -> None:
    assert with_setting(FILE, "max_sessions", "3") == FILE.replace("= 9  # at most", "= 3")
    assert with_setting(FILE, "port", "1") == FILE.replace("\n[[rules]]", "\nport = 1\n[[rules]]")
    hosts = FILE.replace('[\n  "a.example",  # redact = 1\n]', '["b"]')
    assert with_setting(FILE, "allowed_hosts", '["b"]') == hosts
    assert tomllib.loads(without_setting(FILE, "rules")) == {
        "max_sessions": 9,
        "allowed_hosts": ["a.example"],
    }
    assert without_setting(FILE, "redact") == FILE


@pytest.mark.parametrize("link", ["config.toml", "bullpen"])
async def test_a_linked_file_is_changed_in_its_place(
    bullpen_without_server: Bullpen, tmp_path: Path, link: str
) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    file = dotfiles / "config.toml"
    file.write_text("port = 1\n")
    file.chmod(0o644)
    directory = tmp_path / ".config" / "bullpen"
    directory.parent.mkdir(parents=True)
    if link == "bullpen":
        directory.symlink_to(dotfiles)
    else:
        directory.mkdir()
        (directory / link).symlink_to(file)
    assert (await bullpen_without_server("config", "set", "port", "2")).code == 0
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("port = 2\n", 0o644)
    assert [each.name for each in dotfiles.iterdir()] == ["config.toml"]
