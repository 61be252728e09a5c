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
        """() => [...document.querySelectorAll('table, figure:not(.stacked) svg')]
        .filter(e => { const b = e.getBoundingClientRect(); return b.width < 150 || b.height < 40 })
        .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert not hidden
    # Of a stacked figure the panels are seen; a colour bar is narrow and a legend low by nature.
    largest = tab.evaluate(
        """() => [...document.querySelectorAll('figure.stacked')].map(figure => {
        const boxes = [...figure.querySelectorAll('svg.panel')].map(e => e.getBoundingClientRect());
        return Math.max(...boxes.map(b => Math.min(b.width / 150, b.height / 40))) })"""
    )
    assert all(size >= 1 for size in largest)


@pytest.fixture
def open_person(open_page, person_page):  # noqa: F811
    def open_ready(*arguments, **options):
        tab = open_page(person_page, *arguments, **options)
        tab.wait_for_selector("main[data-ready]")
        return tab

    return open_ready


def test_the_slider_goes_through_the_test_sequences(open_person):
    tab = open_person()
    assert tab.inner_text("#sequence-name") == "number 1, 32 readings"
    before = tab.locator(".answers path").first.get_attribute("d")
    tab.locator("#sequence").fill("3")
    assert tab.inner_text("#sequence-name") != "number 1, 32 readings"
    assert tab.locator(".answers path").first.get_attribute("d") != before


def test_all_panels_share_one_axis_and_one_cursor(open_person):
    tab = open_person()
    lefts, rights = tab.evaluate(
        """() => { const b = [...document.querySelectorAll('.plot')].map(e => e.getBoundingClientRect());
        return [b.map(r => r.left), b.map(r => r.right)] }"""
    )
    assert len(lefts) == 8, "inputs, labels, probabilities and five quantities"
    assert max(lefts) - min(lefts) < 1
    assert max(rights) - min(rights) < 1
    tab.locator(".answers .plot").hover()
    assert tab.locator(".cursor").count() == 8


def test_neurons_are_sorted_on_demand(open_person):
    tab = open_person()
    ticks = "[...document.querySelectorAll('.units .tick')].slice(0, 2).map(e => e.textContent).join()"
    assert tab.evaluate(ticks) == "1,6"
    orders = {}
    for order in ("time constant", "similarity"):
        tab.select_option("#order", order)
        orders[order] = tab.evaluate(ticks)
    assert any(order != "1,6" for order in orders.values())


def test_a_click_ablates_a_neuron_and_the_probabilities_change(open_person):
    tab = open_person()
    plot = tab.locator(".units .plot").first
    height = plot.bounding_box()["height"]
    plot.click(position={"x": 50, "y": height * 2.5 / 6})
    assert tab.get_attribute("#inside", "data-ablated") == "3"
    assert tab.inner_text(".answers b") == "Predicted probabilities without neuron 3"
    assert tab.locator(".answers path.before").count() > 0
    assert tab.locator(".units .band").count() == 5
    plot = tab.locator(".units .plot").first
    plot.click(position={"x": 50, "y": height * 2.5 / 6})
    assert tab.get_attribute("#inside", "data-ablated") == ""


def test_a_printed_page_has_its_panels_and_no_controls(open_person):
    tab = open_person(703)
    tab.emulate_media(media="print")
    assert tab.locator(".controls:visible").count() == 0
    assert tab.locator(".units canvas:visible").count() == 5
    assert tab.evaluate("document.documentElement.scrollWidth") <= 703


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


def test_a_policy_is_looked_at_drive_by_drive_and_ablated(open_page, policy_page):  # noqa: F811
    tab = open_page(policy_page, 1280)
    tab.wait_for_selector("main[data-ready]")
    assert tab.inner_text("#sequence-name") == "summer, road 1, 8 frames"
    assert tab.evaluate("document.querySelector('.pictures img').naturalWidth") == 5 * 160
    assert tab.locator(".answers path.target").count() == 1
    steered = tab.locator(".answers path:not(.target)").first.get_attribute("d")
    tab.locator("#sequence").fill("1")
    assert tab.inner_text("#sequence-name") == "winter, road 1, 8 frames"
    assert tab.locator(".answers path:not(.target)").first.get_attribute("d") != steered
    tab.locator(".units .plot").first.click(position={"x": 50, "y": 5})
    assert tab.inner_text(".answers b") == "Answers without neuron 1"
    assert tab.locator(".answers path.before").count() == 1


def test_the_figures_of_a_policy_stack_on_a_phone(open_page, policy_page):  # noqa: F811
    tab = open_page(policy_page, 390)
    assert tab.locator("#noise figure.stacked svg.panel").count() > 1
    widths = tab.evaluate("[...document.querySelectorAll('svg.panel')].map(e => e.getBoundingClientRect().right)")
    assert max(widths) <= 390
