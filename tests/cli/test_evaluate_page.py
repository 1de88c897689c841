"""The page of an evaluation in a real Chromium."""

from browsing import Page


def test_it_opens_on_a_phone_in_the_dark_and_asks_for_nothing(dither, chromium, path, tmp_path):
    html = tmp_path / "page.html"
    code, _, err = dither("evaluate", path, "--policy", "uniform", "--policy", "column:Q", "--html", html)
    assert code == 0, err
    page = Page(chromium, html, width=360, height=740, theme="dark")
    assert page.run("return document.documentElement.scrollWidth") == 360
    paper = page.run("return getComputedStyle(document.body).backgroundColor")
    page.click(page.one("#theme"))
    assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)" != paper
    assert page.complaints() == []
    assert page.run("return performance.getEntriesByType('resource').length") == 0
    # seen red: a shell without the theme's script; a table outside its box
