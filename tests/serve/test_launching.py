"""`dither serve`: processes that answer over HTTP, end when they are told to, and give the ledger back."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest
import uvicorn

import dither as library
from dither.serve import launching

pytestmark = pytest.mark.usefixtures("closing")
FIELDS = {"context": {"country": ["AT", "CH"]}, "arm": {"topic": ["art", "war"]}}
BODY = {"id": "v", "context": {"country": "AT"}}


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    monkeypatch.delenv("DITHER_TOKEN", raising=False)


@pytest.fixture
def home(tmp_path):
    features = library.Features(**FIELDS, cross=[("country", "topic")])
    stock = library.Catalogue(features, {"a17": {"topic": "art"}, "a23": {"topic": "war"}})
    where = tmp_path / "a.db"
    library.Live(where, bandit=library.LinFP(features=features, floor=0.3), catalogue=stock).close()
    return where


def test_a_process_that_is_told_to_end(home):
    """Running requests are answered; what came is there, the lease is given back, and the token is in no output."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = "a-token-that-nobody-guesses"
    environment = os.environ | {"DITHER_TOKEN": token, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "dither", "serve", home, "--port", str(port), "--expire", "60"]
    service = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {token}"}) as client:
            for _ in range(600):
                with contextlib.suppress(httpx.TransportError):
                    if client.get("/ready").status_code == 200:
                        break
                time.sleep(0.05)
            answer = client.post("/decide", json=BODY)
            assert answer.status_code == 200
            assert "server" not in answer.headers
            assert client.post("/decide", json=BODY, headers={"Authorization": "Bearer wrong"}).status_code == 401
            assert client.post("/reward", json={"id": "v", "reward": 1}).json() == {"answer": "counted"}
        service.send_signal(signal.SIGTERM)
        said, _ = service.communicate(timeout=60)
    finally:
        service.kill()
    assert token not in said
    assert f"http://127.0.0.1:{port}" in said
    with library.Live(home) as live:
        live.learn()
        assert live.learns  # at once: the lease was given back
        assert (len(live.ledger), live.bandit.observations) == (1, 1)


def test_what_is_wrong_is_said_before_anything_is_served(home, dither, monkeypatch, tmp_path):
    monkeypatch.setattr(uvicorn, "run", lambda *_, **__: pytest.fail("it serves"))
    for arguments, words in (
        ([home, "--host", "0.0.0.0"], "needs a token"),
        ([tmp_path / "none.db"], "bandit"),
        ([home, "--name", "*"], "needs a token"),
        ([home, "--store", "some"], "store must be one of"),
        ([home, "--expire", "0"], "expire must be"),
    ):
        code, out, said = dither("serve", *arguments)
        assert code != 0
        assert "http://" not in out
        assert words in " ".join(said.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db"]  # a mistyped path has made no file
    with socket.create_server(("127.0.0.1", 0)) as other:
        code, out, said = dither("serve", home, "--port", str(other.getsockname()[1]))
        assert (code != 0, "http://" in out, "in use" in said) == (True, False, True)
    monkeypatch.setenv("DITHER_TOKEN", "short")
    code, _, said = dither("serve", home)
    assert code != 0
    assert "DITHER_TOKEN must have" in said


def test_workers_open_what_they_are_told(home, dither, monkeypatch):
    ran = []
    monkeypatch.setattr(uvicorn, "run", lambda *asked, **settings: ran.append((asked, settings)))
    monkeypatch.setenv(launching.NAME, "")
    options = ["--workers", "2", "--arms", "7", "--name", "bandit.example", "--port", "8700", "--may-erase"]
    code, said, _ = dither("serve", home, *options)
    assert code == 0, said
    ((asked, settings),) = ran
    assert asked == (launching.FACTORY,)
    assert (settings["workers"], settings["port"], settings["proxy_headers"]) == (2, 8700, False)
    assert settings["timeout_worker_healthcheck"] >= 60  # seen: a worker killed with twenty requests, on a busy machine
    assert json.loads(os.environ[launching.NAME])["arms"] == 7
    app, frozen = launching.application(), []
    monkeypatch.setattr(launching.gc, "freeze", lambda: frozen.append("what was imported"))  # not in this process

    async def a_life():
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://bandit.example") as client:
                asked = ("/decide", BODY), ("/decide", {"mask": [True] * 8}), ("/erase", {"ids": ["nobody"]})
                return [(await client.post(path, json=body)).status_code for path, body in asked]

    assert asyncio.run(a_life()) == [200, 422, 200]
    assert frozen == ["what was imported"]
    assert asyncio.run(a_life()) == [422, 422, 422]  # the ledger is closed
