"""The page as a reader has it, in a real Chromium. Each test says what was broken to see it red."""

import re
from datetime import UTC, datetime

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys

import dither
from browsing import Page
from dither import watch
from watched_ledgers import SCRIPT, served

PLACES = ["/", "/arms", "/decisions", "/decisions/3", "/judge", "/judge?policy=uniform", "/events"]
CONTRAST = """
    const light = (color) => {
        const [r, g, b] = color.match(/[\\d.]+/g).map(Number).map((c) => c / 255)
            .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const paper = (element) => {
        for (let e = element; e; e = e.parentElement) {
            const { backgroundColor } = getComputedStyle(e);
            if (!/(, 0\\)|transparent)$/.test(backgroundColor)) return backgroundColor;
        }
        return "rgb(255, 255, 255)";
    };
    const poor = [];
    for (const element of document.querySelectorAll("body *")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!own || !element.checkVisibility() || element.closest("svg, .hidden, datalist, option")) continue;
        const [a, b] = [light(getComputedStyle(element).color), light(paper(element))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) poor.push(`${element.tagName} ${element.className} ${contrast.toFixed(2)}`);
    }
    return poor;
"""
TICKS = """
    const axis = arguments[0]._fullLayout.xaxis;
    const [low, high] = axis._rl;
    const ticks = axis._vals.filter((tick) => !tick.minor && low <= tick.x && tick.x <= high);
    return ticks.map((tick) => tick.x / 864e5 - Date.UTC(2026, 9, 31) / 864e5);
"""
HOSTILE = """
    const strange = [...document.querySelectorAll("main img, main script:not([type='application/json'])")];
    return strange.map((element) => element.outerHTML);
"""


@pytest.fixture(scope="module")
def address(rich):
    with served(watch.app(rich[0], show_context=True)) as base:
        yield base


def opened(browser, address, place, **how):
    page = Page(browser, address + place, **how)
    page.until("return !document.body.textContent.includes('Being computed')")
    return page


@pytest.mark.parametrize("place", PLACES)
def test_it_opens_quietly_at_every_width_and_in_every_light(chromium, address, place):
    for width, theme in ((360, "light"), (1200, "dark")):
        page = opened(chromium, address, place, width=width, theme=theme)
        plots = page.plots()
        assert page.run("return document.querySelectorAll('.plot').length") == len(plots)
        page.run("document.querySelectorAll('details').forEach((details) => (details.open = true))")
        assert page.run("return document.documentElement.scrollWidth") == width
        assert page.run(CONTRAST) == []
        assert page.run(HOSTILE) == []
        asked = page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        assert asked
        assert all(name.startswith(address) for name in asked)
        assert page.complaints() == []  # no error, and nothing that the content policy refuses
    # seen red: a table out of `.wide`; --soft lighter; the id by which Plotly finds its style left out


def test_numbers_are_shown_under_the_pointer(chromium, address):
    page = opened(chromium, address, "/")
    plot = page.plots()[2]
    box = page.run(
        "const {x, y, width, height} = arguments[0].getBoundingClientRect(); return [x + width / 2, y + height / 2]",
        plot,
    )
    page.command("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    page.until("return arguments[0].querySelectorAll('.hoverlayer text').length", plot)
    shown = page.run("return arguments[0].querySelector('.hoverlayer').textContent", plot)
    assert SCRIPT in shown  # as text
    assert page.complaints() == []
    # seen red: names that are not escaped, which Plotly reads as its own HTML


@pytest.mark.parametrize("days", [1, 2, 30])
def test_the_ticks_of_a_chart_are_days_and_differ(chromium, tmp_path, days):
    bandit = dither.LinFP(dim=3, lam=1.0, floor=0.3, seed=0)
    with dither.Live(tmp_path / "young.db", bandit=bandit, probabilities=True) as live:
        for day in range(days):
            shown = live.choose(np.eye(3), time=datetime(2026, 11, 1 + day, 12, tzinfo=UTC))
            paid = 3e15 * (1 + day) if days == 2 else 1.0
            live.reward(shown.id, paid, time=datetime(2026, 11, 1 + day, 13, tzinfo=UTC))
    with served(watch.app(tmp_path / "young.db")) as base:
        page = opened(chromium, base, "/")
        plots = page.plots()
        assert len(plots) == (3 if days == 1 else 4)  # nothing told arms apart on the first day
        for plot in plots:
            ticks = page.run(TICKS, plot)
            assert ticks == {1: [1], 2: [1, 2], 30: [1, 8, 15, 22, 29]}[days]
            heights = page.run(
                "return [...arguments[0].querySelectorAll('.ytick')].map((one) => one.textContent)", plot
            )
            assert len(heights) == len(set(heights)) > 1
        assert page.complaints() == []
    # seen red: the axis of Plotly alone: "23:59:59.9995" for one day, 12:00 for two, "0, 1, 1" decisions; powers
    # of ten, which Plotly writes with styles


def test_a_band_ends_at_a_gap_and_a_day_between_gaps_is_seen(chromium, tmp_path):
    with dither.Live(tmp_path / "gaps.db", bandit=dither.LinFP(dim=3, lam=1.0, floor=0.3, seed=0)) as live:
        for day in (1, 3, 4):
            time = datetime(2026, 11, day, 12, tzinfo=UTC)
            live.reward(list(live.choose(np.stack([np.eye(3)] * 4), time=time).id), [0.0, 1.0, 1.0, 0.0], time=time)
    with served(watch.app(tmp_path / "gaps.db")) as base:
        page = opened(chromium, base, "/")
        plot = page.plots()[0]
        bands = page.run("return arguments[0].data.filter((one) => one.fill).map(({x}) => x)", plot)
        assert bands == [["2026-11-03", "2026-11-04", "2026-11-04", "2026-11-03"]]
        points = (
            "return [...arguments[0].querySelectorAll('.point')].map((one) => one.getBoundingClientRect().width > 3)"
        )
        assert page.run(points, plot) == [True, False, False]
        errors = "return [...arguments[0].querySelectorAll('.yerror')].map((one) => one.getBoundingClientRect().height)"
        assert [height > 20 for height in page.run(errors, plot)] == [True, False, False]
    # seen red: a band of two lines, which crosses itself over a gap; a line without points


def test_charts_follow_the_theme(chromium, address):
    page = opened(chromium, address, "/", theme="dark")
    plot = page.plots()[0]
    dark = page.lines(plot), page.run("return getComputedStyle(document.body).backgroundColor")
    page.click(page.one("#theme"))
    page.until("return document.documentElement.dataset.theme === 'light'")
    light = page.lines(plot), page.run("return getComputedStyle(document.body).backgroundColor")
    assert light[1] == "rgb(255, 255, 255)" != dark[1]
    assert {color for _, color in light[0]}.isdisjoint({color for _, color in dark[0]})
    page.run("localStorage.clear()")
    # seen red: no listener for "theme"


def test_the_keyboard_reaches_and_sorts_all_of_it(chromium, address):
    page = opened(chromium, address, "/")
    page.plots()
    page.run("scrollTo(0, 0); document.activeElement.blur()")
    reached = []
    place = """
        const e = document.activeElement;
        return [e.className || e.id || e.tagName, getComputedStyle(e).outlineStyle, e.href || ""]
    """
    while not reached or reached[-1][0] != "BODY":
        page.tab()
        reached.append(page.run(place))
    assert reached.pop(0)[0] == "skip"
    assert all(style != "none" for _, style, _ in reached[:-1])  # whoever has the focus is seen to have it
    names = [name for name, _, _ in reached]
    assert {"name", "theme", "wide", "SUMMARY"} <= set(names)
    sorting = [href for _, _, href in reached if "?sort=value-down" in href]
    link = page.one("th a[href^='?sort=value-down']")
    assert sorting
    link.send_keys(Keys.ENTER)
    page.until("return location.search === '?sort=value-down'")
    assert page.one("th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.one(".skip").send_keys(Keys.ENTER)
    assert page.run("return document.activeElement.id") == "content"
    # seen red: `outline: none`; `main` without tabindex


def test_a_question_is_asked_without_a_pointer(chromium, address):
    page = opened(chromium, address, "/judge")
    page.one("#policy").send_keys("always")
    page.one("#arm").send_keys("new-in", Keys.ENTER)
    page.until("return document.querySelector('.answer')")
    assert re.match(r"always new-in: ", page.one(".answer").text)
    assert page.one("#arm").get_attribute("value") == "new-in"
    assert page.complaints() == []


def test_a_reader_of_the_screen_has_names_for_everything(chromium, address):
    page = opened(chromium, address, "/")
    page.plots()
    tree = page.command("Accessibility.getFullAXTree")["nodes"]
    parts = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node.get("ignored")]
    roles = [role for role, _ in parts]
    assert [roles.count(role) for role in ("main", "banner", "contentinfo", "navigation")] == [1] * 4
    for role, name in parts:
        assert name or role not in ("link", "button", "region", "image", "img", "table", "heading", "figure")
    assert roles.count("table") == 4  # those beside charts are folded
    assert len({name for role, name in parts if role == "region"}) >= 4


def test_a_style_or_script_of_a_stranger_is_refused(chromium, address):
    page = opened(chromium, address, "/")
    ask = """
        const done = arguments[0], refused = [];
        addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
        document.body.append(Object.assign(new Image(), {src: "https://example.org/picture.png"}));
        document.body.append(Object.assign(document.createElement("script"), {textContent: "window.hurt = 1"}));
        document.body.append(Object.assign(document.createElement("style"), {textContent: "body {color: red}"}));
        setTimeout(() => done(refused), 100);
    """
    assert sorted(chromium.execute_async_script(ask)) == ["img-src", "script-src-elem", "style-src-elem"]
    assert page.run("return window.hurt") is None
    page.complaints()
