"""The page of a drive in a real browser: it plays, pauses, follows the slider, and fits on phone, desk and paper."""

from pathlib import Path

import pytest
from synthetic_drives import smoke_policy, synthetic_replay
from test_report_browser import CONTRAST

from lrcnet_paper.driving import LEFT_ROAD
from lrcnet_paper.report.drive_page import Setting, write_drive
from lrcnet_paper.training.trained_network import load_trained

pytestmark = pytest.mark.slow
STEPS = 120
PIXEL = "([x, y]) => [...document.getElementById('picture').getContext('2d').getImageData(x, y, 1, 1).data]"
LEFT, RIGHT = [40, 24], [120, 24]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drive")
    with pytest.MonkeyPatch.context() as patch:
        trained = load_trained(smoke_policy(folder, patch))
    replay = synthetic_replay(STEPS, status=LEFT_ROAD, neurons=19)
    return write_drive(trained, replay, Setting("own", "winter", 7, 0.1, 3), folder / "drive.html")


@pytest.fixture
def open_drive(open_page, page):
    def open_ready(*arguments, **options):
        tab = open_page(page, *arguments, **options)
        tab.wait_for_selector("main[data-ready]")
        return tab

    return open_ready


def step(tab):
    return int(tab.get_attribute("#drive", "data-step"))


def scrub(tab, to):
    tab.locator("#scrub").fill(str(to))


def wait_for(tab, condition):
    tab.wait_for_function(f"() => {condition}", timeout=20_000)


def test_it_waits_at_the_beginning(open_drive):
    tab = open_drive()
    assert step(tab) == 0
    assert tab.inner_text("#play") == "Play"
    assert tab.inner_text("#current-time") == "0.0 of 4.0 s"
    assert abs(tab.evaluate(PIXEL, LEFT)[0] - 40) <= 3
    assert not tab.locator("#over").is_visible()


def test_it_plays_and_pauses(open_drive):
    tab = open_drive()
    tab.click("#play")
    assert tab.get_attribute("#play", "aria-pressed") == "true"
    wait_for(tab, "Number(document.getElementById('drive').dataset.step) > 10")
    tab.click("#play")
    stopped = step(tab)
    assert stopped > 10
    tab.wait_for_timeout(300)
    assert step(tab) == stopped
    assert tab.evaluate(PIXEL, LEFT)[0] > 45, "later pictures are brighter"


def test_it_stops_at_the_crash_says_so_and_begins_again(open_drive):
    tab = open_drive()
    scrub(tab, STEPS - 8)
    tab.click("#play")
    wait_for(tab, "document.getElementById('play').textContent === 'Play'")
    assert step(tab) == STEPS
    assert tab.inner_text("#over").startswith("Left the road after")
    assert tab.locator(".crash").count() == 2
    assert tab.inner_text("#current-policy") == "–", "nothing is steered after the end"
    tab.click("#play")
    wait_for(tab, f"Number(document.getElementById('drive').dataset.step) < {STEPS - 8}")
    assert not tab.locator("#over").is_visible()


def test_scrubbing_moves_everything(open_drive):
    tab = open_drive()
    before = tab.evaluate("document.querySelector('#map .car').getAttribute('transform')")
    scrub(tab, 60)
    assert tab.inner_text("#current-time") == "2.0 of 4.0 s"
    assert tab.inner_text("#current-distance") == "24 m"
    assert tab.inner_text("#current-policy") == "+0.0182 1/m"
    assert tab.inner_text("#current-expert") == "+0.0202 1/m"
    assert tab.inner_text("#current-offset") == "0.38 m right"
    assert tab.inner_text("#current-speed") == "12.0 m/s"
    assert tab.evaluate("document.querySelector('#map .car').getAttribute('transform')") != before
    assert tab.evaluate("document.querySelector('#map .driven').getAttribute('d')").count("L") == 60
    for plot in ("#steering", "#offset", "#speed", "#neurons"):
        place = tab.evaluate(
            f"""() => {{ const b = document.querySelector('{plot} .plot').getBoundingClientRect();
            return (document.querySelector('{plot} .cursor').getBoundingClientRect().left - b.left) / b.width }}"""
        )
        assert place == pytest.approx(0.5 / 1.03, abs=0.01)
    assert abs(tab.evaluate(PIXEL, RIGHT)[0] - 132) <= 4


def test_a_click_into_a_curve_goes_there(open_drive):
    tab = open_drive()
    plot = tab.locator("#speed .plot")
    plot.click(position={"x": plot.bounding_box()["width"] / 1.03 / 4, "y": 20})
    assert abs(step(tab) - STEPS / 4) <= 1


def test_the_playback_rate_sets_the_speed(open_drive):
    times = {}
    for rate in ("0.5", "4"):
        tab = open_drive()
        tab.select_option("#rate", rate)
        times[rate] = tab.evaluate(
            """() => new Promise((done) => {
              const main = document.getElementById('drive'), begin = performance.now();
              document.getElementById('play').click();
              const look = () => Number(main.dataset.step) >= 30
                ? done((performance.now() - begin) / 1000) : requestAnimationFrame(look);
              look();
            })"""
        )
    # A second of the drive takes two at half speed and a quarter at four times; a busy machine adds to both.
    assert times["0.5"] >= 1.9
    assert times["4"] < times["0.5"]


def test_attention_lies_over_the_picture_when_asked_for(open_drive):
    tab = open_drive()
    scrub(tab, 60)
    plain = tab.evaluate(PIXEL, LEFT)
    tab.check("#attention")
    over, beside = tab.evaluate(PIXEL, LEFT), tab.evaluate(PIXEL, RIGHT)
    assert over[0] > over[1] + 100, "magenta where it looks"
    assert max(beside[:3]) - min(beside[:3]) < 10, "nothing where it does not"
    tab.uncheck("#attention")
    assert tab.evaluate(PIXEL, LEFT) == plain


def test_the_keyboard_drives_it(open_drive):
    tab = open_drive()
    tab.keyboard.press("ArrowRight")
    assert step(tab) == 30
    tab.keyboard.press("Shift+ArrowRight")
    assert step(tab) == 32
    tab.keyboard.press("ArrowLeft")
    assert step(tab) == 2
    tab.keyboard.press("+")
    assert tab.input_value("#rate") == "2"
    tab.keyboard.press("-")
    tab.keyboard.press("-")
    assert tab.input_value("#rate") == "0.5"
    tab.keyboard.press("a")
    assert tab.is_checked("#attention")
    tab.keyboard.press("Space")
    assert tab.inner_text("#play") == "Pause"
    tab.keyboard.press("Space")
    assert tab.inner_text("#play") == "Play"
    tab.focus("#play")
    tab.keyboard.press("Space")
    assert tab.inner_text("#play") == "Pause", "once, and not once by the button and once by the page"


def test_the_strip_has_a_row_for_every_neuron(open_drive):
    tab = open_drive()
    assert tab.locator("#neurons .y span").count() == 19
    shape = tab.evaluate(
        "(() => { const i = document.querySelector('#neurons img'); return [i.naturalWidth, i.naturalHeight] })()"
    )
    assert shape == [STEPS, 19 * 6]


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_overflows_sideways(open_drive, width):
    tab = open_drive(width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    beyond = tab.evaluate(
        """() => [...document.querySelectorAll('h1,h2,p,dt,dd,figcaption,button,select,label,svg,canvas')]
        .filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"""
    )
    assert not beyond


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_labels_do_not_overlap(open_drive, width):
    overlapping = open_drive(width).evaluate(
        """() => [...document.querySelectorAll('.x, .y, .numbers, .controls')].flatMap(group => {
          const boxes = [...group.children].map(e => [e, e.getBoundingClientRect()]).filter(([, b]) => b.width > 0);
          return boxes.flatMap(([e, a], i) => boxes.slice(i + 1).filter(([, b]) =>
            a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
            .map(([f]) => e.textContent + ' / ' + f.textContent));
        })"""
    )
    assert not overlapping


def test_on_a_phone_the_picture_stays_while_one_reads_the_curves(open_drive):
    tab = open_drive(390)
    tab.evaluate("document.getElementById('neurons').scrollIntoView({block: 'end'})")
    top = tab.evaluate("document.getElementById('picture').getBoundingClientRect().top")
    assert 0 <= top < 30


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(open_drive, scheme):
    poor = CONTRAST.replace("'h1,", "'dt,dd,button,select,label,.x span,.y span,.key,h1,")
    assert not open_drive(1280, scheme).evaluate(poor)


def test_dark_mode_is_dark(open_drive):
    tab = open_drive(1280, "dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"


def test_it_prints_with_some_moments_and_without_controls(open_drive):
    tab = open_drive(703)
    tab.emulate_media(media="print")
    assert tab.locator(".film canvas").count() == 8
    assert tab.locator(".film canvas").first.is_visible()
    assert not tab.locator(".controls").is_visible()
    assert tab.evaluate("document.documentElement.scrollWidth") <= 703
    pdf = tab.pdf(prefer_css_page_size=True)
    assert 1 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") <= 4


def test_curves_are_visible_without_scripts(open_drive, page, browser):
    context = browser.new_context(java_script_enabled=False, offline=True)
    tab = context.new_page()
    tab.goto(Path(page).as_uri())
    assert tab.locator("#steering .curve").count() == 2
    assert "need JavaScript" in tab.inner_text("main")
    context.close()
