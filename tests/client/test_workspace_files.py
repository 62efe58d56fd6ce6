"""The methods for files, images, changes and comments of a session, on a real server."""

from pathlib import Path

import pytest

from bullpen.client import Client, DiffComment, DirectoryEntry
from bullpen.domain.errors import Invalid, NotFound
from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted

PNG = b"\x89PNG\r\n\x1a\n" + bytes(60)


async def test_files_and_directories_of_a_workspace_are_read(client: Client, workspace: Path) -> None:
    (workspace / "notes").mkdir()
    (workspace / "notes" / "a b?.txt").write_text("hello")
    (workspace / "notes" / "binary").write_bytes(b"\0\1")
    session = await client.create_session(location_path=str(workspace / "notes"))
    listing = await client.directory(session.id)
    assert listing.entries == [
        DirectoryEntry(name="a b?.txt", type="file", size=5),
        DirectoryEntry(name="binary", type="file", size=2),
    ]
    assert await client.read_file(session.id, "a b?.txt") == b"hello"
    assert await client.read_file(session.id, "binary") == b"\0\1"
    with pytest.raises(NotFound):
        await client.read_file(session.id, "missing")
    above = await client.create_session(location_path=str(workspace))
    assert [each.name for each in (await client.directory(above.id, "notes")).entries] == [
        "a b?.txt",
        "binary",
    ]
    with pytest.raises(Invalid, match="notes is a directory"):
        await client.read_file(above.id, "notes")


async def test_an_image_is_stored_and_read(client: Client, workspace: Path) -> None:
    session = await client.create_session(location_path=str(workspace))
    image = await client.add_image(session.id, PNG)
    assert (image.mime_type, image.size) == ("image/png", len(PNG))
    assert await client.image(session.id, image.id) == ("image/png", PNG)


async def test_comments_on_changes_are_sent_to_the_agent(
    client: Client, server: Server, workspace: Path
) -> None:
    await define_scripted(server)
    repo = Repo(workspace / "site")
    repo.write("new.txt", "fresh\nfood\n")
    talk = await SessionClient.begin(server, locationPath=str(repo.path))
    comment = DiffComment(path="new.txt", line=1, end_line=2, text="why two lines?")
    sent = await client.comment(talk.id, [comment], text="please look")
    prompt = await talk.wait_for_event("user_prompt", promptId=sent.prompt_id)
    assert prompt["data"]["text"].startswith("please look")
    assert "why two lines?" in prompt["data"]["text"]
