"""The client trusts the configured certificate of a server, and no other one."""

import asyncio
from contextlib import aclosing

import pytest

from bullpen.client import Client, ServerDiscovery
from bullpen.domain.errors import RemoteFault
from support.tls import Certificate, TlsServer


def discovery(server: TlsServer, certificate: Certificate | None) -> ServerDiscovery:
    env = {"BULLPEN_URL": server.url, "BULLPEN_TOKEN": server.token}
    return ServerDiscovery(server.home, env, certificate.certificate if certificate else None)


async def test_the_configured_certificate_is_trusted(tls_server: TlsServer, certificate: Certificate) -> None:
    async with asyncio.timeout(30), Client(discovery=discovery(tls_server, certificate)) as client:
        session = await client.create_session(location_path=str(tls_server.workspace))
        assert [each.id for each in await client.sessions()] == [session.id]
        async with aclosing(client.follow(session.id)) as events:
            assert (await anext(events)).type == "session_start"


async def test_any_other_certificate_is_refused(tls_server: TlsServer) -> None:
    async with asyncio.timeout(30), Client(discovery=discovery(tls_server, None)) as client:
        with pytest.raises(RemoteFault, match="not trusted"):
            await client.sessions()
        with pytest.raises(RemoteFault, match="not trusted"):
            await anext(client.dashboard())
