"""The page of a drive in a real browser: it plays, pauses, follows the slider, and fits on phone, desk and paper."""

from pathlib import Path

import pytest
import torch
from synthetic_drives import drive_set, smoke_policy, synthetic_replay
from test_report_browser import CONTRAST

from lrcnet_paper.driving import LEFT_ROAD, TURNED_AWAY, State, advance, roads_from_curvature
from lrcnet_paper.driving.vehicle import start
from lrcnet_paper.report.drive_page import write_drives
from lrcnet_paper.training.trained_network import load_trained

pytestmark = pytest.mark.slow
STEPS = 120
PIXEL = "([x, y]) => [...document.querySelector('.picture').getContext('2d').getImageData(x, y, 1, 1).data]"
LINES = "([x, y]) => [...document.querySelector('.lines').getContext('2d').getImageData(6 * x, 6 * y, 1, 1).data]"
LEFT, RIGHT = [40, 24], [120, 24]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drive")
    with pytest.MonkeyPatch.context() as patch:
        trained = load_trained(smoke_policy(folder, patch))
    replay = synthetic_replay(STEPS, status=LEFT_ROAD, neurons=19)
    return write_drives(drive_set(trained, replay, noises=(0.0,)), folder / "drive.html")


@pytest.fixture(scope="module")
def pair_page(tmp_path_factory):
    """Two policies, two seasons and two levels of noise; the second policy and noise end drives earlier."""
    folder = tmp_path_factory.mktemp("pair")
    with pytest.MonkeyPatch.context() as patch:
        trained = load_trained(smoke_policy(folder, patch))
    replays = [
        synthetic_replay(steps, status=status, neurons=neurons, seed=steps)
        for steps, status, neurons in ((120, 3, 5), (90, LEFT_ROAD, 4), (60, LEFT_ROAD, 5), (50, TURNED_AWAY, 4)) * 2
    ]
    replays[0].advice[40:50] = 3.0  # far beyond the axis
    drives = drive_set([trained, trained], *replays, noises=(0.0, 0.1), seasons=("summer", "winter"))
    return write_drives(drives, folder / "drive.html")


@pytest.fixture
def open_pair(open_page, pair_page):
    def open_ready(*arguments, fragment="", **options):
        tab = open_page(pair_page, *arguments, fragment=fragment, **options)
        tab.wait_for_selector("main[data-ready]")
        return tab

    return open_ready


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
    assert abs(tab.evaluate(PIXEL, RIGHT)[0] - 40) <= 3
    assert not tab.locator(".over").is_visible()


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
    assert tab.evaluate(PIXEL, RIGHT)[0] > 45, "later pictures are brighter"


def test_it_stops_at_the_crash_says_so_and_begins_again(open_drive):
    tab = open_drive()
    scrub(tab, STEPS - 8)
    tab.click("#play")
    wait_for(tab, "document.getElementById('play').textContent === 'Play'")
    assert step(tab) == STEPS
    assert tab.inner_text(".over").startswith("Left the road after")
    assert tab.locator(".crash:not([hidden])").count() == 2
    assert tab.inner_text("#steers-0") == "–", "nothing is steered after the end"
    tab.click("#play")
    wait_for(tab, f"Number(document.getElementById('drive').dataset.step) < {STEPS - 8}")
    assert not tab.locator(".over").is_visible()


def test_scrubbing_moves_everything(open_drive):
    tab = open_drive()
    before = tab.evaluate("document.querySelector('#map .car').getAttribute('transform')")
    scrub(tab, 60)
    assert tab.inner_text("#current-time") == "2.0 of 4.0 s"
    assert tab.inner_text("#distance-0") == "24 m"
    assert tab.inner_text("#steers-0") == "+0.0182 1/m"
    assert tab.inner_text("#expert-0") == "+0.0202 1/m"
    assert tab.inner_text("#offset-0") == "0.38 m right"
    assert tab.inner_text("#speed-0") == "12.0 m/s"
    assert tab.evaluate("document.querySelector('#map .car').getAttribute('transform')") != before
    assert tab.evaluate("document.querySelector('#map .driven').getAttribute('d')").count("L") == 60
    for plot in ("#steering", "#offset", "#speed", "#neurons-0"):
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


def test_attention_lies_over_the_picture_as_strongly_as_asked_for(open_drive):
    tab = open_drive()
    assert tab.is_checked("#attention"), "it is on by default"
    scrub(tab, 60)
    weak, beside = tab.evaluate(PIXEL, LEFT), tab.evaluate(PIXEL, RIGHT)
    assert weak[0] > weak[1] + 50, "magenta where it looks"
    assert max(beside[:3]) - min(beside[:3]) < 10, "nothing where it does not"
    tab.locator("#strength").fill("100")
    strong = tab.evaluate(PIXEL, LEFT)
    assert strong[0] - strong[1] > weak[0] - weak[1]
    tab.uncheck("#attention")
    plain = tab.evaluate(PIXEL, LEFT)
    assert max(plain[:3]) - min(plain[:3]) < 10


def test_the_lanes_edges_are_drawn_where_the_camera_sees_them(open_drive):
    tab = open_drive()
    drawn = "document.querySelector('.lines').getContext('2d').getImageData(0, 0, 960, 288).data.some(v => v > 0)"
    assert not tab.evaluate(drawn)
    tab.check("#edges")
    assert tab.evaluate(drawn)
    # At the start the car stands on the centre line of a bend of 36 m to the left, and looks along it. Ten metres ahead
    # of the camera, 11.5 m ahead of the car, the right edge of the lane is on the circle of radius 36 + 1.75 m.
    ahead = 11.5
    left = 36 - (37.75**2 - ahead**2) ** 0.5
    column, row = 80 - 120 * left / 10, 14 + 120 * 1.5 / 10
    nearby = [tab.evaluate(LINES, [column + shift, row])[3] for shift in (-1, -0.5, 0, 0.5, 1)]
    assert max(nearby) > 100, (column, row)


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
    assert not tab.is_checked("#attention")
    tab.keyboard.press("End")
    assert step(tab) == STEPS
    tab.keyboard.press("Home")
    assert step(tab) == 0
    tab.keyboard.press("f")
    wait_for(tab, "document.fullscreenElement && document.fullscreenElement.id === 'stage'")
    tab.keyboard.press("f")
    wait_for(tab, "!document.fullscreenElement")
    tab.keyboard.press("Space")
    assert tab.inner_text("#play") == "Pause"
    tab.keyboard.press("Space")
    assert tab.inner_text("#play") == "Play"
    tab.focus("#play")
    tab.keyboard.press("Space")
    assert tab.inner_text("#play") == "Pause", "once, and not once by the button and once by the page"


def test_the_strip_has_a_row_for_every_neuron(open_drive):
    tab = open_drive()
    assert tab.locator("#neurons-0 .y span").count() == 19
    size = tab.evaluate("(() => { const c = document.getElementById('activity-0'); return [c.width, c.height] })()")
    assert size == [STEPS, 19]


def test_dragging_the_noise_moves_the_crash(open_pair):
    tab = open_pair()
    assert tab.inner_text("#noise-value") == "none"
    assert tab.inner_text("#ending-0").startswith("✓ Arrived")
    assert tab.inner_text("#ending-1").startswith("✕ Left the road")
    before = tab.evaluate("document.querySelector('#map .crash.policy-1').getAttribute('transform')")
    tab.locator("#noise").fill("1")
    assert tab.inner_text("#noise-value") == "variance 0.1"
    assert tab.inner_text("#ending-0").startswith("✕ Left the road")
    assert tab.inner_text("#current-time") == "0.0 of 2.0 s"
    assert tab.evaluate("document.querySelector('#map .crash.policy-1').getAttribute('transform')") != before
    assert tab.locator("#map .crash:not([hidden])").count() == 2


def test_two_policies_share_one_clock_and_the_ghost_stays_where_it_crashed(open_pair):
    tab = open_pair()
    scrub(tab, 100)
    assert tab.inner_text("#current-time") == "3.3 of 4.0 s"
    assert tab.inner_text("#steers-0") != "–"
    assert tab.inner_text("#steers-1") == "–", "the second policy crashed after 3 s"
    assert tab.locator(".over").nth(1).is_visible()
    assert not tab.locator(".over").nth(0).is_visible()
    places = [
        tab.evaluate(f"document.querySelector('#map .{kind}.policy-1').getAttribute('transform').split(' rotate')[0]")
        for kind in ("car", "crash")
    ]
    assert places[0] == places[1]


def test_the_season_is_switched(open_pair):
    tab = open_pair()
    tab.select_option("#season", "1")
    assert tab.evaluate("location.hash").endswith("season=winter")


def test_pointing_at_a_neuron_shows_its_curve_and_a_click_colours_the_road(open_pair):
    tab = open_pair()
    plot = tab.locator("#neurons-1 .plot")
    box = plot.bounding_box()
    plot.hover(position={"x": 30, "y": box["height"] * 2.5 / 4})
    assert tab.inner_text("#neuron-name") == "Neuron 3 of LRCU-S, seed 0 B"
    assert "with the steering" in tab.inner_text("#neuron-facts")
    assert tab.evaluate("document.querySelector('#neuron .curve.state').getAttribute('d')").count("L") == 89
    assert tab.locator(".paint path").count() == 0
    plot.click(position={"x": 30, "y": box["height"] * 2.5 / 4})
    assert tab.locator(".paint path").count() > 3
    assert tab.inner_text("#paint-name") == "neuron 3 of LRCU-S, seed 0 B"
    assert tab.input_value("#neuron-select") == "1-2"
    tab.select_option("#neuron-select", "")
    assert tab.locator(".paint path").count() == 0


def test_the_expert_beyond_the_axis_is_marked(open_pair):
    tab = open_pair()
    assert tab.locator("#steering .beyond-key").is_visible()
    assert tab.evaluate("document.querySelector('#steering .beyond.expert').getAttribute('d')").count("M") == 10
    tab.locator("#noise").fill("1")
    assert not tab.locator("#steering .beyond-key").is_visible()


def test_a_link_leads_to_a_moment_a_noise_a_season_and_a_neuron(open_pair):
    tab = open_pair(fragment="#t=1.5&noise=0.1&season=winter&neuron=1-2")
    assert step(tab) == 45
    assert tab.input_value("#noise") == "1"
    assert tab.input_value("#season") == "1"
    assert tab.locator(".paint path").count() > 3
    tab.keyboard.press("Home")
    assert tab.evaluate("location.hash") == "#t=0.0&noise=0.1&season=winter&neuron=1-2"
    tab.evaluate("location.hash = '#t=7777&noise=9&season=x&neuron=8-8'")
    wait_for(tab, "document.getElementById('drive').dataset.step === '60'")


def test_the_readers_car_follows_the_equations_of_the_world(open_drive):
    """Without a key the car drives straight on, out of the bend, as it does in the world."""
    road = roads_from_curvature(torch.full((1, 300), 1 / 36, dtype=torch.float64))
    state: State = start(1)
    road.speed.fill_(12.0)
    while float(state.offset.abs()) <= 2 and float(state.heading.abs()) <= torch.pi / 10:
        state = advance(road, state, torch.zeros(1))
    tab = open_drive()
    tab.keyboard.press("w")
    assert tab.inner_text("#wheel") == "Give it back"
    wait_for(tab, "document.getElementById('drive').dataset.wheel.startsWith('turned away')")
    assert tab.get_attribute("#drive", "data-wheel") == f"turned away from the road after {float(state.arc):.0f} m"
    assert tab.inner_text(".over").startswith("You turned away from the road after")
    tab.keyboard.press("Escape")
    assert tab.get_attribute("#drive", "data-wheel") is None


def test_the_arrow_keys_steer_the_readers_car(open_drive):
    tab = open_drive()
    tab.keyboard.press("w")
    tab.keyboard.down("ArrowRight")
    wait_for(tab, "document.getElementById('drive').dataset.wheel.includes('after')")
    right = tab.get_attribute("#drive", "data-wheel")
    tab.keyboard.up("ArrowRight")
    tab.keyboard.press("Home")
    tab.keyboard.press("w")
    wait_for(tab, "document.getElementById('drive').dataset.wheel.includes('after')")
    straight = tab.get_attribute("#drive", "data-wheel")
    metres = [int(words.split()[-2]) for words in (right, straight)]
    assert metres[0] < metres[1], "to the right, out of a left bend, the road ends sooner"


@pytest.fixture(params=["open_drive", "open_pair"])
def open_either(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("width", [320, 390, 768, 1400])
def test_nothing_overflows_sideways(open_either, width):
    tab = open_either(width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    beyond = tab.evaluate(
        """() => [...document.querySelectorAll('h1,h2,p,dt,dd,figcaption,button,select,label,svg,canvas')]
        .filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"""
    )
    assert not beyond


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_labels_do_not_overlap(open_either, width):
    overlapping = open_either(width).evaluate(
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
    tab.evaluate("document.getElementById('neurons-0').scrollIntoView({block: 'end'})")
    top = tab.evaluate("document.querySelector('.picture').getBoundingClientRect().top")
    assert 0 <= top < 60


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(open_either, scheme):
    poor = CONTRAST.replace("'h1,", "'dt,dd,button,select,label,.x span,.y span,.key,h1,")
    assert not open_either(1280, scheme).evaluate(poor)


def test_dark_mode_is_dark(open_drive):
    tab = open_drive(1280, "dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"


def test_it_prints_with_some_moments_and_without_controls(open_drive):
    tab = open_drive(703)
    tab.emulate_media(media="print")
    assert tab.locator(".film canvas").count() == 8
    assert tab.locator(".film canvas").first.is_visible()
    assert tab.locator(".controls:visible").count() == 0
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


def test_a_print_has_moments_of_both_policies(open_pair):
    tab = open_pair(703)
    tab.emulate_media(media="print")
    names = [caption.rpartition(",")[0] for caption in tab.locator(".film figcaption").all_inner_texts()]
    assert len(names) == 8
    assert len(set(names)) == 2
    assert names == sorted(names, key=names.index), "one policy after the other"


def test_the_page_fills_the_screen_on_demand(open_drive):
    tab = open_drive(1280)
    tab.get_by_role("button", name="Full screen").click()
    tab.wait_for_function("document.fullscreenElement !== null")


def test_the_steering_beside_a_neuron_has_the_colour_of_its_policy(open_pair):
    tab = open_pair(1280)
    for policy in (0, 1):
        tab.locator(f"#activity-{policy}").hover(position={"x": 40, "y": 4})
        colours = [
            tab.evaluate(f"getComputedStyle(document.querySelector('{curve}')).stroke")
            for curve in ("#neuron .curve.steered", f"#steering .curve.policy-{policy}")
        ]
        assert colours[0] == colours[1]
