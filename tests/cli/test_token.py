"""`bullpen token`: tokens are created, shown once, listed, rotated and revoked."""

import json

import pytest

from bullpen.cli.token import parse_duration
from bullpen.client import Client
from bullpen.domain.errors import Invalid, Unauthorized
from support.commands import Bullpen
from support.server import Server


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000), ("2w", 1_209_600)]
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "d", "30", "0d", "-1d", "1.5d", "30 d", "30y", "²d", "9" * 5000 + "d"])
def test_any_other_duration_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="--expires"):
        parse_duration(text)


async def test_a_new_token_allows_only_its_scope(bullpen: Bullpen, server: Server) -> None:
    shown = (await bullpen("token", "add", "wall", "--scope", "view", "--expires", "30d")).out.splitlines()
    assert shown[0] == "created wall (view, expires in 30d); this is its token, shown only now:"
    bullpen.env["BULLPEN_TOKEN"] = shown[1]
    assert (await bullpen("ls")).out == "no sessions; start one with: bullpen new\n"
    refused = await bullpen("new", str(server.workspace), "-d")
    assert (refused.code, refused.err) == (1, "bullpen: this needs the scope operate\n")


async def test_the_text_of_a_token_is_in_no_list(bullpen: Bullpen) -> None:
    text = (await bullpen("token", "add", "ci", "-q")).out.strip()
    created = json.loads((await bullpen("token", "add", "phone", "--expires", "12h", "--json")).out)
    assert (created["scope"], created["kind"]) == ("operate", "token")
    listed, table = await bullpen("token", "list", "--json"), await bullpen("token", "list")
    assert [each["name"] for each in json.loads(listed.out)["tokens"]] == ["ci", "phone"]
    assert "in 12h" in table.out
    assert (await bullpen("token", "ls", "-q")).out.split()[1] == created["id"]
    for secret in (text, created["token"]):
        assert secret
        assert secret not in listed.out + table.out


async def test_a_revoked_token_is_refused(bullpen: Bullpen, server: Server) -> None:
    text = (await bullpen("token", "add", "ci", "-q")).out.strip()
    assert (await bullpen("token", "revoke", "ci")).out == "revoked ci\n"
    async with Client(server.url, text) as client:
        with pytest.raises(Unauthorized):
            await client.sessions()
    again = await bullpen("token", "revoke", "ci")
    assert (again.code, again.err) == (
        1,
        "bullpen: there is no token or device called ci; see: bullpen token ls\n",
    )


async def test_two_tokens_with_the_same_name_are_revoked_by_id(bullpen: Bullpen) -> None:
    ids = [json.loads((await bullpen("token", "add", "ci", "--json")).out)["id"] for _ in range(2)]
    unclear = await bullpen("token", "revoke", "ci")
    assert unclear.code == 1
    assert all(each[:8] in unclear.err for each in ids)
    assert (await bullpen("token", "revoke", *ids)).out == "revoked ci\nrevoked ci\n"
    assert (await bullpen("token", "list")).out.startswith("no tokens but the owner's")


@pytest.mark.own_server
async def test_after_a_rotation_the_local_command_line_uses_the_new_token(
    bullpen: Bullpen, server: Server
) -> None:
    rotated = (await bullpen("token", "rotate")).out.splitlines()
    assert rotated[0] == "the owner's token was replaced; the new one, shown only now:"
    assert rotated[2].startswith("BULLPEN_TOKEN still has the old token here")
    assert (await bullpen("ls")).code == 1
    del bullpen.env["BULLPEN_TOKEN"]
    assert (await bullpen("ls")).code == 0
    assert (server.home / "token").read_text().strip() == rotated[1]


async def test_a_token_that_lasts_thirty_days_is_listed_with_thirty_days(bullpen: Bullpen) -> None:
    await bullpen("token", "add", "ci", "--expires", "30d")
    await bullpen("token", "add", "day", "--expires", "1d")
    listed = (await bullpen("token", "list")).out.splitlines()[1:]
    assert sorted(line.rpartition("  ")[2] for line in listed) == ["in 1d", "in 30d"]
