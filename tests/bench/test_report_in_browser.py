"""The report as a reader has it, in a real Chromium. Each test says what was broken to see it red."""

import math
from dataclasses import replace

import pytest
from selenium.webdriver.common.keys import Keys

from browsing import Page
from dither_bench.commands import report
from dither_bench.define import figures
from dither_bench.define.figures import FIGURES
from stored import fabricated

TOGETHER = ["LinFP", "LinTS", "Greedy"]
THREE = "[aria-labelledby='fig3-linear']"  # the section with three panels


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Three panels with published curves, a figure over d, and a sweep, in one report."""
    out = tmp_path_factory.mktemp("results")
    fabricated(figures.select(FIGURES["fig3-linear"], algorithms=TOGETHER), out=out)
    named = [*FIGURES["fig2b"].algorithms, "RandLinUCB:S=0.01,sigma=0.1,preset=as_run"]  # wider than a phone
    fabricated(figures.select(FIGURES["fig2b"], panels=["d=2", "d=5"], algorithms=named), out=out)
    sweep = figures.select(FIGURES["h2"], panels=["d=10"], rounds=50, algorithms=["LinFP:c=0.1", "LinFP:c=1", "Greedy"])
    fabricated(replace(sweep, x="setting"), out=out)
    return report.write(out, out / "report.html")


def test_it_opens_without_a_complaint_and_without_a_request(chromium, path):
    page = Page(chromium, path)
    page.plots()
    assert page.complaints() == []
    assert page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)") == []
    assert path.stat().st_size < 10_000_000
    # The browser itself refuses what the file might ask for.
    ask = """
        const done = arguments[0], refused = [];
        addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
        document.body.append(Object.assign(new Image(), {src: "https://example.org/picture.png"}));
        fetch("https://example.org/data.json").catch(() => setTimeout(() => done(refused), 100));
    """
    assert sorted(chromium.execute_async_script(ask)) == ["connect-src", "img-src"]
    # seen red: the rule out of the shell; a picture by its path


def test_a_panel_is_drawn_when_it_comes_into_view(chromium, path):
    page = Page(chromium, path, height=500)
    first, *_, last = page.all(".plot")
    page.run("arguments[0].scrollIntoView()", first)
    page.until("return Boolean(arguments[0].querySelector('.main-svg'))", first)
    assert not page.run("return arguments[0].querySelector('.main-svg')", last)
    assert len(page.plots()) == 3 + 1
    drawn = page.lines(page.plots(THREE)[0])
    assert sum(dash == "" for dash, _ in drawn) == 3  # the paper has two of them, dashed and in their colours
    assert sorted(color for dash, color in drawn if dash) == sorted(drawn[k][1] for k in (0, 2))
    assert len(page.all("img")) == 1  # the sweep
    # seen red: `seen.observe` of the first panel alone; no published curves


def test_a_curve_is_hidden_by_a_click_and_shown_by_a_key(chromium, path):
    page = Page(chromium, path)
    plots = page.plots(THREE)
    before = [page.lines(plot) for plot in plots]
    button = page.one(f"{THREE} button[data-hide='1']")
    assert "LinTS" in button.text
    page.click(button)
    assert button.get_attribute("aria-pressed") == "false"
    assert [len(page.lines(plot)) for plot in plots] == [len(lines) - 2 for lines in before]  # ours and the paper's
    button.send_keys(Keys.SPACE)
    assert button.get_attribute("aria-pressed") == "true"
    assert [page.lines(plot) for plot in plots] == before
    published = page.one(f"{THREE} button[data-hide='published']")
    published.send_keys(Keys.ENTER)
    assert [len(page.lines(plot)) for plot in plots] == [3] * 3
    page.one(f"{THREE} button[data-all]").send_keys(Keys.ENTER)
    assert [page.lines(plot) for plot in plots] == before
    # seen red: a list of hidden numbers that holds text; `show` without drawing


def test_the_keyboard_reaches_everything_and_zooms(chromium, path):
    page = Page(chromium, path)
    plot = page.plots(THREE)[0]
    page.run("scrollTo(0, 0); document.activeElement.blur()")
    reached = []
    for _ in range(40):
        page.browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(page.run("const e = document.activeElement; return e.id || e.classList[0] || e.tagName"))
    assert reached[:2] == ["skip", "theme"]
    assert {"key", "plot", "wide"} <= set(reached)
    whole = page.run("return arguments[0].layout.xaxis.range", plot)
    plot.send_keys("+")
    near = page.run("return arguments[0].layout.xaxis.range", plot)
    assert near[1] - near[0] == pytest.approx(0.7 * (whole[1] - whole[0]))
    plot.send_keys(Keys.ARROW_RIGHT)
    assert page.run("return arguments[0].layout.xaxis.range[0]", plot) > near[0]
    plot.send_keys("0")
    assert page.run("return arguments[0].layout.xaxis.range", plot) == whole
    # seen red: a plot without tabindex; zoom of one axis alone


def test_linear_or_logarithmic(chromium, path, tmp_path):
    page = Page(chromium, path)
    plots = page.plots(THREE)
    linear, log = page.all(f"{THREE} [data-scale]")
    scales = "return [...arguments].map((p) => p.layout.xaxis.type + ' ' + p.layout.yaxis.type)"
    assert page.run(scales, *plots) == ["linear linear"] * 3
    plots[0].send_keys("+")
    page.click(log)
    assert page.run(scales, *plots) == ["log log"] * 3
    assert (linear.get_attribute("aria-pressed"), log.get_attribute("aria-pressed")) == ("false", "true")
    low, high = page.run("return arguments[0].layout.xaxis.range", plots[0])  # in powers of ten
    assert -0.5 < low <= 0 < math.log10(20_000) <= high < math.log10(20_000) + 0.5
    assert page.complaints() == []
    as_asked = report.write(path.parent, tmp_path / "log.html", log=True)
    page = Page(chromium, as_asked)
    assert page.run(scales, *page.plots()) == ["log log"] * 4
    # seen red: the zoom kept from one scale to the other


def test_light_and_dark(chromium, path):
    page = Page(chromium, path, theme="dark")
    plot = page.plots(THREE)[0]
    paper = "return getComputedStyle(document.body).backgroundColor"
    dark = page.run(paper), page.lines(plot)
    assert page.one("#theme").get_attribute("aria-pressed") == "true"
    page.click(page.one("#theme"))
    light = page.run(paper), page.lines(plot)
    assert light[0] == "rgb(255, 255, 255)" != dark[0]
    assert not set(light[1]) & set(dark[1])  # other colours on other paper
    assert len(light[1]) == len(dark[1])
    page.browser.refresh()
    assert page.run(paper) == light[0]  # what the reader chose is remembered
    page.run("localStorage.clear()")
    page.browser.refresh()
    assert page.run(paper) == dark[0]
    # seen red: no event "theme"; nothing remembered


def test_a_phone_never_scrolls_sideways(chromium, path):
    page = Page(chromium, path, width=360, height=740)
    plots = page.plots()
    page.run("document.querySelectorAll('details').forEach((details) => (details.open = true))")
    assert page.run("return document.documentElement.scrollWidth") == 360
    assert all(page.run("return arguments[0].getBoundingClientRect().right", plot) <= 360 for plot in plots)
    assert page.run("return [...document.querySelectorAll('.wide')].some((box) => box.scrollWidth > box.clientWidth)")
    page.command("Emulation.setDeviceMetricsOverride", width=1000, height=740, deviceScaleFactor=1, mobile=False)
    page.until("return arguments[0].querySelector('.main-svg').clientWidth > 400", plots[0])  # turned, it grows
    # seen red: a table outside its box; no ResizeObserver; long names in one line


def test_a_phone_shows_a_long_title_and_caption_within_its_width(chromium, path, tmp_path):
    """Seen red with `overflow-wrap` left out of the page: a word of 90 letters is wider than the screen."""
    long = "regret" * 15
    named = report.write(path.parent, tmp_path / "r.html", title=long, caption=long, xlabel=long)
    page = Page(chromium, named, width=390, height=844)
    page.plots()
    page.run("document.querySelectorAll('details').forEach((details) => (details.open = true))")
    assert page.run("return document.documentElement.scrollWidth") == 390
    tables = "return [...document.querySelectorAll('table')]"
    assert page.run(f"{tables}.every((table) => table.closest('.wide').getBoundingClientRect().right <= 390)")


def test_limits_and_scales_are_those_that_were_asked_for(chromium, path, tmp_path):
    """Seen red without `range` and `scale` in the script."""
    page = Page(chromium, report.write(path.parent, tmp_path / "r.html", xlim=(2, 8), yscale="log"))
    (plot, *_) = page.plots()
    axes = "const {xaxis, yaxis} = arguments[0].layout; return [xaxis.range.map(Math.round), xaxis.type, yaxis.type]"
    assert page.run(axes, plot) == [[2, 8], "linear", "log"]


def test_on_paper_everything_is_drawn_in_light(chromium, path):
    page = Page(chromium, path, theme="dark")
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert page.run("return [...document.querySelectorAll('.plot')].every((p) => p.querySelector('.main-svg'))")
    assert page.run("return [...document.querySelectorAll('details')].every((details) => details.open)")
    assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.run("dispatchEvent(new Event('afterprint'))")
    assert page.run("return getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    # seen red: only what was in view drawn
