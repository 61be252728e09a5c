"""The pages of `lrcnet explain` in a real browser: narrow and wide, light and dark, offline."""

import functools

import pytest
from test_explanation import person_page, policy_page, small_split  # noqa: F401
from test_report_browser import CONTRAST

pytestmark = pytest.mark.slow


@pytest.fixture(params=["person_page", "policy_page"])
def open_explanation(request, open_page):
    return functools.partial(open_page, request.getfixturevalue(request.param))


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_overflows_and_everything_can_be_seen(open_explanation, width):
    tab = open_explanation(width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    hidden = tab.evaluate(
        """() => [...document.querySelectorAll('table, figure svg')]
        .filter(e => { const b = e.getBoundingClientRect(); return b.width < 150 || b.height < 40 })
        .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert not hidden


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(open_explanation, scheme):
    assert not open_explanation(1280, scheme).evaluate(CONTRAST)


def test_pictures_with_pixels_are_drawn(open_explanation):
    broken = open_explanation(1280).evaluate(
        """async () => { const all = [...document.querySelectorAll('svg image')];
        const bad = await Promise.all(all.map(e => new Promise(done => { const i = new Image();
          i.onload = () => done(i.naturalWidth < 1); i.onerror = () => done(true);
          i.src = e.href.baseVal || e.getAttribute('href') })));
        return [all.length, bad.filter(x => x).length] }"""
    )
    assert broken[0] > 0
    assert broken[1] == 0
