"""The page in a real browser: narrow and wide, light, dark and on paper."""

import functools
import itertools
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def open_report(open_page, page):
    return functools.partial(open_page, page, reduced_motion="reduce")


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_the_page_does_not_overflow_sideways(open_report, width):
    tab = open_report(width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    beyond = tab.evaluate(
        """() => [...document.querySelectorAll('h1,h2,p,li,caption,td,th,figcaption,summary')]
        .filter(e => !e.closest('.table, figure, pre, thead') && e.getBoundingClientRect().right > innerWidth + 1)
        .map(e => e.textContent.slice(0, 60))"""
    )
    assert not beyond


@pytest.mark.parametrize("width", [390, 1280])
def test_every_table_and_picture_can_be_seen(open_report, width):
    tab = open_report(width)
    tab.evaluate("document.querySelectorAll('details').forEach(box => { box.open = true })")
    tab.wait_for_timeout(300)
    hidden = tab.evaluate(
        """() => [...document.querySelectorAll('table, figure:not(.stacked) svg, figure.stacked svg.panel')]
        .filter(e => { const b = e.getBoundingClientRect(); return b.width < 150 || b.height < 15 })
        .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert not hidden
    assert tab.locator("table").count() >= 12


def test_on_a_phone_no_cell_is_cut_off(open_report):
    cut = open_report(390).evaluate(
        """() => [...document.querySelectorAll('tbody td, tbody th')]
        .filter(e => getComputedStyle(e).display !== 'none' && e.scrollWidth > e.clientWidth + 1)
        .map(e => e.textContent)"""
    )
    assert not cut


CONTRAST = """() => {
  const linear = c => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4 };
  const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) };
  const behind = e => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c }
    return 'rgb(255, 255, 255)' };
  const poor = new Set();
  for (const e of document.querySelectorAll('h1,h2,p,a,li,td,th,caption,figcaption,summary,.verdict,.conditions,b')) {
    const pair = [light(getComputedStyle(e).color), light(behind(e))].sort((a, b) => b - a);
    if ((pair[0] + 0.05) / (pair[1] + 0.05) < 4.5) poor.add(e.className + ' ' + e.textContent.slice(0, 40));
  }
  return [...poor];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(open_report, scheme):
    assert not open_report(1280, scheme).evaluate(CONTRAST)


def test_dark_mode_is_dark_and_takes_the_pictures_along(open_report):
    tab = open_report(1280, "dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    ink = tab.evaluate("getComputedStyle(document.querySelector('figure svg')).color")
    assert ink == "rgb(232, 234, 237)"


def test_the_keyboard_reaches_the_contents_and_the_tables(open_report):
    tab = open_report(1280)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.type") == "search"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.getAttribute('href')") == "#overview"
    assert tab.locator(".table[tabindex='0']").count() == tab.locator(".table").count()


CURRENT = "[...document.querySelectorAll('.contents a[aria-current]')].map(a => a.hash)"


@pytest.mark.parametrize("width", [390, 1280])
def test_the_contents_follow_the_reader(open_report, width):
    tab = open_report(width)
    assert tab.evaluate(CURRENT) == ["#overview"]
    tab.evaluate("document.getElementById('neural-ode').scrollIntoView()")
    tab.wait_for_function(f"{CURRENT}[0] === '#neural-ode'")
    assert len(tab.evaluate(CURRENT)) == 1
    box = tab.locator(".contents").bounding_box()
    assert box["y"] >= -1
    assert box["y"] < 100
    assert tab.locator(".contents").evaluate("e => e.open") == (width > 1099)


def test_the_summary_takes_at_most_two_screens(open_report):
    tab = open_report(1400)
    assert tab.evaluate("document.getElementById('overview').getBoundingClientRect().bottom") <= 2 * 844


SHOWN = "[...document.querySelectorAll('main > section')].filter(s => !s.hidden).map(s => s.id)"


def test_a_tile_shows_the_claims_of_its_verdict_and_pressing_it_again_shows_all(open_report):
    tab = open_report(1280)
    everything = tab.evaluate(SHOWN)
    tile = tab.locator(".tile[data-verdict=agrees]")
    count = int(tile.locator("b").inner_text())
    tile.click()
    rows = tab.locator(".table[aria-label=Claims] tbody tr:visible")
    assert rows.count() == count > 0
    assert rows.locator(".verdict.agrees").count() == count
    assert 1 < len(tab.evaluate(SHOWN)) < len(everything)
    assert f"{count} claims shown" in tab.locator(".shown").inner_text()
    tile.click()
    assert tab.evaluate(SHOWN) == everything


def test_search_shows_the_sections_that_have_all_words(open_report):
    tab = open_report(1280)
    tab.locator("input[type=search]").fill("duffing oscillator")
    found = tab.evaluate(SHOWN)
    assert "neural-ode" in found
    assert "elastance" not in found
    tab.locator("input[type=search]").fill("")
    assert "elastance" in tab.evaluate(SHOWN)


def test_a_link_to_a_folded_figure_opens_it(open_report):
    tab = open_report(1280)
    name = tab.evaluate("document.querySelector('details figure').id")
    tab.evaluate(f"location.hash = '#{name}'")
    tab.wait_for_function(f"document.getElementById('{name}').closest('details').open")


def test_on_a_phone_the_panels_of_a_figure_stack(open_report):
    tab = open_report(390)
    figure = tab.locator("#neural-ode-phase-portraits")
    boxes = [panel.bounding_box() for panel in figure.locator("svg.panel").all()]
    assert len(boxes) >= 6
    assert all(box["width"] <= 390 for box in boxes)
    assert all(low["y"] >= high["y"] + high["height"] - 1 for high, low in itertools.pairwise(boxes))
    assert "LRC-S" in figure.locator(".finding").inner_text()
    tab.set_viewport_size({"width": 1280, "height": 844})
    tab.wait_for_function("!document.querySelector('#neural-ode-phase-portraits.stacked')")
    assert figure.locator("svg.panel").count() == 0


def test_on_a_phone_the_contents_fold_after_a_choice(open_report):
    tab = open_report(390)
    tab.locator(".contents summary").click()
    tab.locator(".contents a[href='#lane-keeping']").click()
    assert not tab.locator(".contents").evaluate("e => e.open")
    tab.wait_for_function("Math.abs(document.getElementById('lane-keeping').getBoundingClientRect().top) < 120")


def test_it_prints(open_report, tmp_path):
    pdf = open_report(1280).pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    pages = pdf.count(b"/Type /Page\n") or pdf.count(b"/Type /Page")
    assert 5 <= pages <= 60


def test_on_paper_everything_is_open_and_two_figures_stand_side_by_side(open_report):
    tab = open_report(1024)
    tab.emulate_media(media="print")
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("main details:not([open])").count() == 0
    widths = tab.evaluate("[...document.querySelectorAll('figure')].map(f => f.getBoundingClientRect().width)")
    assert max(widths) <= 1024 / 2
    tab.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert tab.locator("main details:not([open])").count() > 0


def test_on_paper_nothing_is_cut_off(browser, page):
    # Landscape A4 without its margins is 271 mm or 1024 pixels wide; a wider table would lose its last columns.
    context = browser.new_context(viewport={"width": 1024, "height": 700})
    tab = context.new_page()
    tab.emulate_media(media="print")
    tab.goto(Path(page).as_uri())
    wide = tab.evaluate(
        "() => [...document.querySelectorAll('table')].filter(t => t.getBoundingClientRect().right > 1025)"
        ".map(t => t.caption.textContent + ' ' + t.getBoundingClientRect().right)"
    )
    context.close()
    assert not wide
