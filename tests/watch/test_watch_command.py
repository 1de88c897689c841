"""`dither watch`: what it runs, and where."""

import socket

import pytest
import uvicorn

from asking import Client


def test_it_serves_the_page_on_this_machine(dither, rich, monkeypatch):
    ran = []
    monkeypatch.setattr(uvicorn, "run", lambda page, **settings: ran.append((page, settings)))
    code, out, err = dither("watch", rich[0], "--port", 8123)
    assert (code, err) == (0, "")
    assert "http://127.0.0.1:8123" in out
    ((page, settings),) = ran
    assert (settings["host"], settings["port"], settings["proxy_headers"]) == ("127.0.0.1", 8123, False)
    text = Client(page).get("/decisions/8").text
    assert "--show-context" in text
    dither("watch", rich[0], "--show-context", "--name", "bandit.example.org")
    page, _ = ran[-1]
    assert "--show-context" not in Client(page).get("/decisions/8").text
    assert Client(page, base="http://bandit.example.org").get("/").status_code == 200
    assert Client(page, base="http://other.example.org").get("/").status_code == 400
    # seen red: `show_context=True`; without `hosts`


def test_others_need_a_token(dither, rich, monkeypatch):
    ran = []
    monkeypatch.setattr(uvicorn, "run", lambda page, **settings: ran.append(page))
    monkeypatch.delenv("DITHER_TOKEN", raising=False)
    code, _, err = dither("watch", rich[0], "--host", "0.0.0.0")
    assert (code, ran) == (2, [])
    assert "DITHER_TOKEN" in err
    monkeypatch.setenv("DITHER_TOKEN", "a-token-of-enough-letters")
    assert dither("watch", rich[0], "--host", "0.0.0.0")[0] == 0
    page = Client(ran[0], at=("10.0.0.7", 1))
    assert page.get("/").status_code == 401
    assert page.get("/").headers["www-authenticate"].startswith("Basic")
    assert page.get("/", auth=("anybody", "a-token-of-enough-letters")).status_code == 200
    # seen red: without `secret.fits`


def test_no_address_is_told_that_another_one_has(dither, rich, monkeypatch):
    monkeypatch.setattr(uvicorn, "run", lambda page, **settings: None)
    with socket.create_server(("127.0.0.1", 0)) as other:
        code, out, said = dither("watch", rich[0], "--port", other.getsockname()[1])
    assert (code != 0, "http://" in out, "in use" in said) == (True, False, True)
    # seen red: told before it was tried


@pytest.mark.parametrize("home", ["nothing.db", "postgresql://app:s3cret@127.0.0.1:1/news"])
def test_what_is_no_ledger_is_one_line(dither, home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = dither("watch", home)
    assert (code, out) == (2, "")
    assert err.startswith("dither: ")
    assert err.count("\n") == 1
    assert "s3cret" not in err
    assert not list(tmp_path.iterdir())
