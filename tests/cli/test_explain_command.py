"""`dither explain`: the same as `live.explain`, from a ledger that another process may have open."""

import json

import numpy as np
import pytest

from browsing import Page

EVIL = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """A file, the id of a decision in it, and what `live.explain` says of it."""
    import dither as library

    path = tmp_path_factory.mktemp("explain") / "offers.db"
    with library.Live(path, bandit=library.LinFP(dim=3, seed=0, floor=0.2)) as live:
        for _ in range(5):
            d = live.choose(np.eye(3), arms=["none", EVIL, "call"])
            live.reward(d.id, float(d.place))
        return path, d.id, live.explain(d.id)


def test_it_says_what_live_says(dither, ledger, tmp_path):
    path, id, want = ledger
    code, out, err = dither("explain", path, id)
    assert (code, out.strip(), err) == (0, str(want), "")
    page = tmp_path / "why.html"
    code, out, err = dither("explain", path, id, "--json", "--html", page)
    assert (code, json.loads(out)) == (0, want.to_dict())
    assert f"wrote {page}" in err
    text = page.read_text()
    assert EVIL not in text
    assert "&lt;script&gt;alert" in text


def test_what_is_not_there_is_named(dither, ledger, tmp_path):
    path, _, _ = ledger
    code, _, err = dither("explain", path, "nobody")
    assert (code, err) == (2, "dither: no decision 'nobody' in this ledger: pass the id that `choose` answered\n")
    code, _, err = dither("explain", tmp_path / "typo.db", "nobody")
    assert code == 2
    assert "no ledger in" in err
    assert not (tmp_path / "typo.db").exists()  # seen red: an empty ledger made by a typo


def test_a_page_lies_where_pages_of_other_commands_may(dither, ledger, tmp_path):
    path, id, _ = ledger
    page = tmp_path / "new" / "folder" / "why.html"
    assert dither("explain", path, id, "--html", page)[0] == 0
    assert page.read_text().startswith("<!doctype html>")
    for wrong, words in ((tmp_path, "must name a file"), (page / "why.html", "is a file: name another place")):
        code, out, err = dither("explain", path, id, "--html", wrong)
        assert (code, out, words in err) == (2, "", True)
    # seen red: the explanation, and then the refusal


def test_the_page_on_a_phone(dither, chromium, ledger, tmp_path):
    path, id, _ = ledger
    html = tmp_path / "why.html"
    assert dither("explain", path, id, "--html", html)[0] == 0
    page = Page(chromium, html, width=360, height=740, theme="dark")
    assert page.run("return document.documentElement.scrollWidth") == 360
    assert page.complaints() == []
