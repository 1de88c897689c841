"""Who may ask, from where, how much, and how many at once. The app behind the guard says what reached it."""

import asyncio
import base64
import json
import logging
import pickle

import pytest
from starlette.responses import Response

from asking import HERE, Client, body, raw
from dither.serve import guard, secret

TOKEN = "a token that nobody guesses".replace(" ", "-")
AWAY = ("192.0.2.7", 50000)


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    monkeypatch.delenv(secret.NAME, raising=False)


@pytest.fixture
def token(monkeypatch):
    monkeypatch.setenv(secret.NAME, TOKEN)


async def echo(scope, receive, send):
    """Answer with the body; fail where the path says so."""
    message = await receive()
    assert message["more_body"] is False
    if scope["path"] == "/fails":
        raise RuntimeError(f"a secret: {message['body']!r}")
    headers = {"cache-control": "max-age=60"} if scope["path"] == "/kept" else {}
    await Response(message["body"], headers={"content-security-policy": "none of this", **headers})(
        scope, receive, send
    )


def client(*, at=HERE, base="http://localhost", app=echo, headers=None, root="", **settings):
    return Client(guard.Guard(app, **settings), base, at=at, headers=headers, root=root)


def said(response, status):
    """The words of a refusal, which has the form of all refusals."""
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert (document["status"], document["type"]) == (status, "about:blank")
    return document["detail"]


# From where


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_without_a_token_this_machine_may_ask(address):
    assert client(at=(address, 1)).get("/").status_code == 200


@pytest.mark.parametrize("at", [AWAY, ("10.0.0.1", 1), ("::ffff:192.0.2.7", 1), ("testclient", 1), ("", 1), None])
def test_without_a_token_nobody_else_may_ask(at):
    assert secret.NAME in said(client(at=at).get("/"), 403)
    # seen red: `_here` that is True for an address that is none


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded"])
def test_a_proxy_on_this_machine_does_not_make_others_local(name):
    assert "proxy" in said(client().get("/", headers={name: "192.0.2.7"}), 403)


@pytest.mark.parametrize("host", ["localhost", "localhost:8765", "127.0.0.1:80", "[::1]:8765", "LOCALHOST"])
def test_names_of_this_machine_are_served(host):
    assert client().get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "evil.example:80", "", "127.0.0.1.nip.io"])
@pytest.mark.parametrize("with_token", [False, True])
def test_no_name_of_a_stranger_leads_here(host, with_token, monkeypatch):
    """DNS rebinding: the page of a stranger whose name leads to this machine."""
    if with_token:
        monkeypatch.setenv(secret.NAME, TOKEN)
    response = client(headers={"Authorization": f"Bearer {TOKEN}"}).get("/", headers={"Host": host})
    assert response.status_code == 400
    assert response.headers["x-content-type-options"] == "nosniff"
    # seen red: without TrustedHostMiddleware


def test_other_names_are_served_where_they_are_said(token):
    asked = client(at=AWAY, hosts=["bandit.example", "*.bandit.example"], headers={"Authorization": f"Bearer {TOKEN}"})
    for host, status in {"bandit.example": 200, "a.bandit.example": 200, "bandit.example.evil": 400}.items():
        assert asked.get("/", headers={"Host": host}).status_code == status


def test_hosts_that_open_all_doors_are_refused():
    with pytest.raises(ValueError, match=secret.NAME):
        guard.Guard(echo, hosts=["*"])
    with pytest.raises(TypeError, match="list"):
        guard.Guard(echo, hosts="bandit.example")
    with pytest.raises(ValueError, match="without its port"):
        guard.Guard(echo, hosts=["ban*dit"])


# Who


RIGHT = [f"Bearer {TOKEN}", f"bearer {TOKEN}"]
WRONG = [
    None,
    "",
    "Bearer",
    f"Bearer {TOKEN[:-1]}",
    f"Bearer {TOKEN}x",
    f"Basic {TOKEN}",
    TOKEN,
    "Bearer \xe4\xf6\xfc",
    f"Digest {TOKEN}",
]


def basic(password, name="anyone"):
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


@pytest.mark.parametrize("authorization", [*RIGHT, *WRONG])
@pytest.mark.parametrize("at", [HERE, AWAY])
def test_with_a_token_who_has_it_may_ask(token, at, authorization):
    headers = {} if authorization is None else {"Authorization": authorization.encode("latin-1")}
    response = client(at=at).get("/", headers=headers)
    if authorization in RIGHT:
        assert response.status_code == 200
    else:
        assert "Bearer" in said(response, 401)
        assert response.headers["www-authenticate"].startswith("Bearer")
    assert TOKEN not in response.text
    # seen red: `opens` that is True; one that compares a beginning


def test_a_browser_sends_it_as_a_password(token):
    page = client(browser=True)
    assert page.get("/").headers["www-authenticate"].startswith("Basic")
    for authorization, status in {
        basic(TOKEN): 200,
        basic(TOKEN, ""): 200,
        f"Bearer {TOKEN}": 200,
        basic("another"): 401,
        basic(""): 401,
        "Basic !!!": 401,
        "Basic": 401,
    }.items():
        assert page.get("/", headers={"Authorization": authorization}).status_code == status
    assert client().get("/", headers={"Authorization": basic(TOKEN)}).status_code == 401  # of a service


@pytest.mark.parametrize("root", ["", "/inside"])
def test_paths_that_are_not_asked_for_the_token(token, root):
    asked = client(unasked=["/health"], root=root)
    for path, status in {"/health": 200, "/health/": 401, "/other": 401, "/health/../other": 401}.items():
        assert asked.get(root + path).status_code == status


@pytest.mark.parametrize("text", ["", "short", "has a space in it, has one", "ä" * 20, "x" * 1001, "with\nnewline" * 3])
def test_a_token_that_cannot_be_one_is_refused_and_not_repeated(monkeypatch, text):
    monkeypatch.setenv(secret.NAME, text)
    with pytest.raises(ValueError, match=f"{secret.NAME} must have") as refusal:
        guard.Guard(echo)
    assert not text or text not in str(refusal.value)


def test_a_token_is_shown_nowhere(token, caplog):
    one = secret.Token(TOKEN)
    assert TOKEN not in f"{one!r} {one} {vars(guard.Guard(echo))}"
    with pytest.raises(TypeError, match="not copied"):
        pickle.dumps(one)
    with caplog.at_level(logging.DEBUG):
        for authorization in (f"Bearer {TOKEN}", f"Bearer {TOKEN}x"):
            client().post("/fails", content="x", headers={"Authorization": authorization})
    assert TOKEN not in caplog.text
    # seen red: without `__repr__` of a dataclass


# What browsers may do


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_what_writes_does_not_come_from_another_site(headers, method):
    assert "another site" in said(client().request(method, "/", headers=headers), 403)
    assert client().get("/", headers=headers).status_code == 200  # whose answer the other page cannot read
    # seen red: `_of_another_site` that is False


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}])
def test_programs_and_the_same_site_may_write(headers):
    assert client().post("/", headers=headers).status_code == 200


def test_every_response_says_what_a_browser_may_do(token):
    right = {"Authorization": f"Bearer {TOKEN}"}
    several = client(limits=guard.Limits(body=10))
    for response in (
        several.get("/", headers=right),
        several.get("/"),
        several.get("/", headers={"Host": "evil.example"}),
        several.post("/", content="x" * 11, headers=right),
        several.get("/fails", headers=right),
    ):
        assert response.headers["content-security-policy"] == guard.DATA
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
        assert "access-control-allow-origin" not in response.headers
    assert client(policy=guard.PAGE).get("/").headers["content-security-policy"] == guard.PAGE
    assert "unsafe" not in guard.PAGE + guard.DATA
    assert client().get("/kept", headers=right).headers["cache-control"] == "max-age=60"  # files that do not change


def test_an_error_of_the_code_is_told_to_the_log_alone(caplog):
    words = said(client().post("/fails", content="my context"), 500)
    assert "my context" not in words
    assert "my context" in caplog.text


# How much, and how many at once


def test_a_body_has_a_size():
    few = client(limits=guard.Limits(body=10))
    assert few.post("/", content=b"x" * 10).content == b"x" * 10
    response = few.post("/", content=b"x" * 11)
    assert "at most 10 bytes" in said(response, 413)
    assert response.headers["connection"] == "close"
    for length in ("11", "9" * 5000):
        assert few.post("/", content=b"x", headers={"Content-Length": length}).status_code == 413


def test_a_body_in_pieces_is_put_together():
    status, text, _ = raw(guard.Guard(echo), [body(b"ab"), body(b""), body(b"cd", more=False)])
    assert (status, text) == (200, b"abcd")


def test_a_body_without_a_length_is_given_up_where_it_is_too_large():
    endless = [body(b"x" * 4) for _ in range(1000)]
    status, _, taken = raw(guard.Guard(echo, limits=guard.Limits(body=10)), endless)
    assert (status, taken) == (413, 3)
    # seen red: the size compared when all of it is there


def test_a_body_that_does_not_come_is_given_up():
    behind = guard.Guard(echo, limits=guard.Limits(seconds=0.01))
    status, text, _ = raw(behind, [body(b"x")])
    assert status == 408
    assert "0.01 s" in json.loads(text)["detail"]
    assert behind._running == 0


def test_nobody_is_answered_who_is_gone():
    reached = []
    status, _, _ = raw(guard.Guard(lambda *_: reached.append(1)), [body(b"x"), {"type": "http.disconnect"}])
    assert (status, reached) == (None, [])


def test_more_requests_than_are_answered_at_once_come_again():
    statuses = []

    async def scene():
        door, inside = asyncio.Event(), asyncio.Event()

        async def slow(scope, receive, send):
            inside.set()
            await door.wait()
            await echo(scope, receive, send)

        one = guard.Guard(slow, limits=guard.Limits(at_once=1))
        about = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"localhost")], "client": HERE}

        async def receive():
            return body(b"x", more=False)

        async def send(message):
            if message["type"] == "http.response.start":
                statuses.append((message["status"], dict(message["headers"]).get(b"retry-after")))

        first = asyncio.create_task(one(about, receive, send))
        await inside.wait()
        await one(about, receive, send)
        door.set()
        await first
        await one(about, receive, send)

    asyncio.run(scene())
    assert statuses == [(503, b"1"), (200, None), (200, None)]
    # seen red: `_running` that is not counted down


@pytest.mark.parametrize("wrong", [{"body": 0}, {"body": 1.5}, {"seconds": 0}, {"at_once": 0}, {"seconds": 1e9}])
def test_what_is_no_limit_is_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        guard.Limits(**wrong)


def test_a_socket_is_closed():
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(guard.Guard(echo)({"type": "websocket", "path": "/"}, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


# In another application


def test_an_application_that_mounts_it_says_who_may_ask(token):
    """Who asks, and by which name, is then asked by it alone; limits, headers and the rule of origins stay."""
    mounted = client(at=AWAY, base="http://any.example", mounted=True, limits=guard.Limits(body=10))
    assert mounted.post("/", content="x").status_code == 200
    assert mounted.post("/", content="x" * 11).status_code == 413
    assert mounted.post("/", headers={"Origin": "http://evil.example"}).status_code == 403
    assert mounted.get("/").headers["content-security-policy"] == guard.DATA
