"""Endpoints with TLS: certificates and host names are verified, as Python does by default."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from contextlib import aclosing
from pathlib import Path

import pytest
from aiohttp import connector
from tests.models.http.raw_server import client_of, raw_server, replies, whole

from sightline.models.http_client import CallError, HTTPClient, Timeouts


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("no openssl here, which makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    words = [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(words, check=True, capture_output=True)
    return certificate, key


@pytest.fixture
def server_side(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


def trust(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that starts with this variable: aiohttp reads it once."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    monkeypatch.setattr(connector, "_SSL_CONTEXT_VERIFIED", ssl.create_default_context())


def test_a_certificate_that_nobody_vouches_for_is_refused(server_side: ssl.SSLContext) -> None:
    async def run() -> None:
        async with raw_server(replies(whole()), server_side) as server, client_of(server, "key") as client:
            await client.call("/", b"{}")

    with pytest.raises(CallError, match=r"SSLCertVerificationError.*self-signed certificate"):
        asyncio.run(run())


def test_a_certificate_for_another_host_is_refused(
    server_side: ssl.SSLContext, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(certificate, monkeypatch)

    async def run() -> None:
        async with raw_server(replies(whole()), server_side) as server:
            address = server.address.replace("127.0.0.1", "localhost")
            async with aclosing(HTTPClient(address, None, Timeouts(5, 5))) as client:
                await client.call("/", b"{}")

    with pytest.raises(CallError, match=r"Hostname mismatch"):
        asyncio.run(run())


def test_a_certificate_that_the_environment_trusts_is_accepted(
    server_side: ssl.SSLContext, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(certificate, monkeypatch)

    async def run() -> tuple[list[bytes], int]:
        async with raw_server(replies(whole(b"x" * 10**6)), server_side) as server:
            async with client_of(server, "key") as client:
                found = [(await client.call("/", bytes(10**6))).body for _ in range(3)]
                accepted = server.accepted
            await server.closed()
            return found, accepted

    assert asyncio.run(run()) == ([b"x" * 10**6] * 3, 1)


def test_calls_over_tls_that_are_cancelled_leave_nothing_behind(
    server_side: ssl.SSLContext, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(certificate, monkeypatch)

    async def run() -> None:
        async with raw_server(replies(whole()), server_side) as server:
            async with client_of(server) as client:
                for number in range(60):
                    call = asyncio.create_task(client.call("/", bytes(100_000)))
                    await asyncio.sleep(number * 0.0002)
                    call.cancel()
                    await asyncio.gather(call, return_exceptions=True)
                assert (await client.call("/", b"{}")).status == 200
            await server.closed()

    asyncio.run(run())


@pytest.mark.slow
def test_a_server_that_speaks_no_tls_fails() -> None:
    async def run() -> None:
        async with raw_server(replies(whole())) as server:
            address = server.address.replace("http:", "https:")
            async with aclosing(HTTPClient(address, None, Timeouts(5, 1))) as client:
                await client.call("/", b"{}")

    with pytest.raises(CallError, match=r"SSL|no connection within 1 s"):
        asyncio.run(run())
