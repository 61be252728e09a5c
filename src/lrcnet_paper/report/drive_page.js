// The page of a drive: which drives are shown, and the present moment, `now` in seconds, determine everything.

const find = (id) => document.getElementById(id);
const data = JSON.parse(find("data").textContent);
const main = find("drive"), scrub = find("scrub"), play = find("play"), rate = find("rate");
const count = data.policies.length, stepsPerWidth = data.span / data.step;
const ramp = makeRamp(data.ramp), asColour = ramp.map((parts) => `rgb(${parts.join()})`);
const sheets = makeSheets(data.columns, data.rows, () => draw());
const screens = [...document.querySelectorAll(".screen")];
const pictures = screens.map((screen) => makePicture(screen, data.camera, sheets));
const charts = Object.fromEntries(
  ["steering", "offset", "speed", "neuron"].map((name) => [name, makeChart(find(name), stepsPerWidth)]));
const maps = makeMaps(document, count), wheel = makeWheel(data.vehicle);
const noise = find("noise"), season = find("season"), attention = find("attention"), strength = find("strength");
const edges = find("edges"), takeWheel = find("wheel"), wheelKeys = find("wheel-keys");
let now = 0, playing = false, lastTick = null, drives = [], road = null, activities = [];
let pinned = null, shown = null;  // neurons, as {policy, k}

const duration = () => Math.max(...drives.map((drive) => drive.action.length)) * data.step;
const stepOf = (time) => Math.floor(time / data.step + 1e-6);
const level = () => (noise ? Number(noise.value) : 0);
const seasonIndex = () => (season ? Number(season.value) : 0);

// Choose the drives of the present season and level of noise.
function select() {
  drives = data.policies.map((_, k) =>
    data.drives.find((drive) => drive.policy === k && drive.season === seasonIndex() && drive.noise === level()));
  road = data.roads[seasonIndex()];
  activities = drives.map(decodeActivity);
  maps.select(drives, road);
  charts.steering.set("expert", drives[0].advice);
  drives.forEach((drive, k) => {
    charts.steering.set(`policy-${k}`, drive.action);
    charts.offset.set(`policy-${k}`, drive.offset);
    charts.speed.set(`policy-${k}`, drive.speed);
    drawActivity(find(`activity-${k}`), activities[k], ramp, stepsPerWidth);
    main.style.setProperty(`--end-${k}`, `${(100 * drive.action.length) / stepsPerWidth}%`);
    main.classList.toggle(`crashed-${k}`, drive.crashed);
    screens[k].classList.toggle("crashed", drive.crashed);
    screens[k].querySelector(".over").textContent = drive.ending;
    const verdict = find(`ending-${k}`);
    verdict.classList.toggle("crashed", drive.crashed);
    verdict.textContent = `${drive.crashed ? "✕" : "✓"} ${drive.ending}, ${(drive.action.length * data.step).toFixed(1)} s: ${drive.reason}`;
  });
  if (noise) find("noise-value").textContent = formatNoise(data.noises[level()]);
  scrub.max = Math.round(duration() / data.step);
  showNeuron(shown || strongestNeuron());
  paint();
  now = clamp(now, 0, duration());
  draw();
  drawFilm();
}

const formatNoise = (variance) => (variance ? `variance ${variance}` : "none");
const signed = (value, digits) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
const formatKnown = (value, format) => (value === null || value === undefined ? "–" : format(value));
const formatCurvature = (value) => formatKnown(value, (k) => `${signed(k, 4)} 1/m`);
const side = (value) => (Math.abs(value) < 0.005 ? "" : value > 0 ? " left" : " right");

function drawNumbers(step) {
  find("current-time").textContent = `${(Math.min(now, duration())).toFixed(1)} of ${duration().toFixed(1)} s`;
  drives.forEach((drive, k) => {
    const last = Math.min(step, drive.action.length), show = (name, text) => { find(`${name}-${k}`).textContent = text; };
    show("distance", formatKnown(drive.distance[last], (value) => `${value.toFixed(0)} m`));
    show("steers", formatCurvature(drive.action[step]));
    show("expert", formatCurvature(drive.advice[step]));
    show("offset", formatKnown(drive.offset[last], (value) => `${Math.abs(value).toFixed(2)} m${side(value)}`));
    show("speed", formatKnown(drive.speed[last], (value) => `${value.toFixed(1)} m/s`));
  });
}

function draw() {
  const step = stepOf(now);
  main.style.setProperty("--now", `${(100 * now) / data.span}%`);
  main.dataset.step = step;
  scrub.value = step;
  scrub.setAttribute("aria-valuetext", `${(step * data.step).toFixed(1)} seconds`);
  drives.forEach((drive, k) => {
    const ended = step >= drive.action.length, number = Math.min(drive.frames - 1, Math.floor(step / drive.interval));
    screens[k].querySelector(".over").hidden = !ended;
    // The car as it was when the frame was taken, so that the lane's edges lie on it.
    pictures[k].show(drive, road, number, carOf(drive, number * drive.interval), {
      noise: data.noises[level()],
      strength: attention && attention.checked ? Number(strength.value) / 100 : 0,
      edges: edges && edges.checked,
    });
  });
  if (wheel.car) drawWheel();
  maps.show(drives, step, wheel.place);
  drawNumbers(step);
}

function drawWheel() {
  pictures[0].sketch(road, wheel.place);
  const over = screens[0].querySelector(".over");
  over.hidden = false;
  screens[0].classList.toggle("driven", wheel.active);
  over.textContent = wheel.ending
    ? `You ${wheel.ending}. ${data.policies[0].label} ${drives[0].ending.toLowerCase()}. Press w to try again, Escape to go back.`
    : `You drive: ${wheel.metres.toFixed(0)} m. ← and → steer, Escape gives the wheel back.`;
  main.dataset.wheel = wheel.ending || "driving";
}

function go(time) {
  now = clamp(time, 0, duration());
  draw();
}

// The browser calls this once per frame of the screen, with a time in milliseconds.
function tick(time) {
  if (!playing) return;
  const passed = lastTick === null ? 0 : (Number(rate.value) * (time - lastTick)) / 1000;
  lastTick = time;
  // A tab in the background stops the clock; without a limit the car would jump when the reader comes back.
  if (wheel.active) wheel.drive(Math.min(passed, 0.25));
  go(now + passed);
  if (wheel.car ? !wheel.active : now >= duration()) return setPlaying(false);
  requestAnimationFrame(tick);
}

function setPlaying(on) {
  playing = on;
  lastTick = null;
  play.textContent = on ? "Pause" : "Play";
  play.setAttribute("aria-pressed", String(on));
  if (!on) return writeLink();
  if (now >= duration() && !wheel.active) now = 0;
  requestAnimationFrame(tick);
}

function startWheel() {
  go(wheel.start(road, drives[0], stepOf(now)) * data.step);
  takeWheel.textContent = "Give it back";
  wheelKeys.hidden = false;
  setPlaying(true);
}

function stopWheel() {
  wheel.stop();
  delete main.dataset.wheel;
  takeWheel.textContent = "Take the wheel";
  wheelKeys.hidden = true;
  screens[0].classList.remove("driven");
  screens[0].querySelector(".over").textContent = drives[0].ending;
  setPlaying(false);
  draw();
}

// Neurons: the one under the pointer has its curve drawn, a pinned one colours the road.
function strongestNeuron() {
  const r = drives[0].r;
  return { policy: 0, k: r.reduce((best, value, k) => (Math.abs(value) > Math.abs(r[best]) ? k : best), 0) };
}

function showNeuron(neuron) {
  shown = neuron;
  const { policy, k } = neuron, drive = drives[policy], r = drive.r[k];
  const { low, high } = drive, { label } = data.policies[policy], figure = find("neuron");
  // The neuron's own range from its 2nd to its 98th percentile fills nine tenths of the plot.
  const plotLow = Number(figure.dataset.low), plotHigh = Number(figure.dataset.high), span = high[k] - low[k] || 1;
  const scaled = drive.action.map((_, step) => {
    const share = (activities[policy].value(step, k) - low[k]) / span;
    return plotLow + (0.05 + 0.9 * share) * (plotHigh - plotLow);
  });
  charts.neuron.set("state", scaled);
  charts.neuron.set("steered", drive.action);
  figure.style.setProperty("--steered", `var(--policy-${policy})`);
  const turns = r >= data.clear ? "turns left" : r <= -data.clear ? "turns right" : "turns to neither side";
  find("neuron-name").textContent = `Neuron ${k + 1} of ${label}`;
  find("neuron-facts").textContent = `r = ${signed(r, 2)} with the steering: ${turns}; ` +
    `most of its values are between ${signed(low[k], 2)} and ${signed(high[k], 2)}`;
  main.dataset.neuron = `${policy}-${k}`;
  document.querySelectorAll(".neurons .row").forEach((row, i) => {
    row.hidden = i !== policy;
    row.style.top = `${(100 * k) / data.policies[i].units}%`;
    row.style.height = `${100 / data.policies[i].units}%`;
  });
}

function paint() {
  const select = find("neuron-select"), key = find("paint-key");
  select.value = pinned ? `${pinned.policy}-${pinned.k}` : "";
  key.hidden = !pinned;
  if (!pinned) return maps.paint(null, null);
  const { policy, k } = pinned, activity = activities[policy];
  // 16 shades: enough for the eye, and few enough paths for a phone.
  const shade = (step) => asColour[Math.min(255, Math.floor(activity.colour(step, k) / 16) * 17)];
  maps.paint(drives[policy], drives[policy].action.map((_, step) => shade(step)));
  find("paint-name").textContent = `neuron ${k + 1} of ${data.policies[policy].label}`;
}

function pin(neuron) {
  const same = pinned && neuron && pinned.policy === neuron.policy && pinned.k === neuron.k;
  pinned = same ? null : neuron;
  if (pinned) showNeuron(pinned);
  paint();
  writeLink();
}

function listenToNeurons(plot, policy) {
  const neuronAt = (event) => {
    const box = plot.getBoundingClientRect(), rows = data.policies[policy].units;
    return { policy, k: clamp(Math.floor(((event.clientY - box.top) / box.height) * rows), 0, rows - 1) };
  };
  plot.addEventListener("pointermove", (event) => showNeuron(neuronAt(event)));
  plot.addEventListener("pointerleave", () => showNeuron(pinned || strongestNeuron()));
  plot.addEventListener("click", (event) => pin(neuronAt(event)));
}

// Links to a moment, such as #t=7.4&noise=0.1&season=winter&neuron=0-6.
function writeLink() {
  const parts = [`t=${now.toFixed(1)}`];
  if (noise) parts.push(`noise=${data.noises[level()]}`);
  if (season) parts.push(`season=${data.seasons[seasonIndex()]}`);
  if (pinned) parts.push(`neuron=${pinned.policy}-${pinned.k}`);
  history.replaceState(null, "", `#${parts.join("&")}`);
}

function readLink() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const at = (list, value) => list.findIndex((one) => String(one) === value);
  if (noise && at(data.noises, wanted.get("noise")) >= 0) noise.value = at(data.noises, wanted.get("noise"));
  if (season && at(data.seasons, wanted.get("season")) >= 0) season.value = at(data.seasons, wanted.get("season"));
  const [policy, k] = (wanted.get("neuron") || "").split("-").map(Number);
  if (data.policies[policy] && k < data.policies[policy].units) pinned = shown = { policy, k };
  select();
  if (Number.isFinite(Number(wanted.get("t") ?? NaN))) go(Number(wanted.get("t")));
}

function changeRate(by) {
  rate.selectedIndex = clamp(rate.selectedIndex + by, 0, rate.options.length - 1);
}

function changeNoise(by) {
  if (!noise) return;
  noise.value = level() + by;
  select();
  writeLink();
}

function toggleFullScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else find("stage").requestFullscreen();
}

play.addEventListener("click", () => setPlaying(!playing));
scrub.addEventListener("input", () => go(Number(scrub.value) * data.step));
scrub.addEventListener("change", writeLink);
find("full").addEventListener("click", toggleFullScreen);
takeWheel.addEventListener("click", () => { (wheel.active ? stopWheel : startWheel)(); takeWheel.blur(); });
for (const control of [noise, season]) {
  if (control) control.addEventListener("input", () => { select(); writeLink(); });
}
for (const control of [attention, strength, edges]) if (control) control.addEventListener("input", () => draw());
find("neuron-select").addEventListener("input", (event) => {
  const [policy, k] = event.target.value.split("-").map(Number);
  pinned = null;
  pin(event.target.value ? { policy, k } : null);
});
document.querySelectorAll(".neurons .plot").forEach(listenToNeurons);
document.querySelectorAll(".chart:not(.neurons) .plot").forEach((plot) => {
  const jump = (event) => {
    const box = plot.getBoundingClientRect();
    go(((event.clientX - box.left) / box.width) * data.span);
  };
  plot.addEventListener("pointerdown", jump);
  plot.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });
  plot.addEventListener("pointerup", writeLink);
});
wheelKeys.querySelectorAll("button").forEach((button) => {
  const direction = Number(button.dataset.direction);
  button.addEventListener("pointerdown", () => wheel.steer(direction));
  for (const name of ["pointerup", "pointerleave", "pointercancel"]) button.addEventListener(name, () => wheel.steer(0));
});
window.addEventListener("hashchange", readLink);

document.addEventListener("keyup", (event) => {
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") wheel.steer(0);
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target instanceof Element ? event.target : document.body;
  // Select elements and the sliders of noise and strength use the arrows themselves.
  if (target.closest("select, #noise, #strength")) return;
  const frame = drives[0].interval * data.step, by = event.shiftKey ? frame : 1;
  const jump = (time) => { go(time); writeLink(); };
  const keys = {
    ArrowLeft: () => jump(stepOf(now) * data.step - by),
    ArrowRight: () => jump(stepOf(now) * data.step + by),
    Home: () => jump(0),
    End: () => jump(duration()),
    "+": () => changeRate(1),
    "-": () => changeRate(-1),
    a: () => { if (attention) attention.click(); },
    e: () => { if (edges) edges.click(); },
    f: toggleFullScreen,
    n: () => changeNoise(1),
    N: () => changeNoise(-1),
    w: () => (wheel.active ? stopWheel() : startWheel()),
  };
  if (wheel.active) {
    keys.ArrowLeft = () => wheel.steer(1);
    keys.ArrowRight = () => wheel.steer(-1);
  }
  if (wheel.car) keys.Escape = stopWheel;
  // Space presses a focused button or checkbox already.
  if (!target.closest("button, input[type=checkbox]")) keys[" "] = () => setPlaying(!playing);
  const action = keys[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

// A printed page shows eight moments side by side, of two policies four each.
function drawFilm() {
  const film = document.querySelector(".film"), chosen = drives;
  Promise.all(chosen.map((drive) => sheets.wait(drive.sheets))).then(() => {
    if (chosen !== drives) return;
    film.replaceChildren(...chosen.flatMap((drive, policy) => {
      const moments = Math.min(8 / chosen.length, drive.frames), name = data.policies[policy].label;
      return Array.from({ length: moments }, (_, k) => {
        const number = moments > 1 ? Math.round((k * (drive.frames - 1)) / (moments - 1)) : 0;
        const figure = document.createElement("figure"), canvas = document.createElement("canvas");
        const caption = document.createElement("figcaption");
        canvas.width = data.camera.columns;
        canvas.height = data.camera.rows;
        sheets.draw(drive.sheets, number, canvas.width, canvas.height, canvas.getContext("2d"));
        const time = `${(number * drive.interval * data.step).toFixed(1)} s`;
        caption.textContent = chosen.length > 1 ? `${name}, ${time}` : time;
        figure.append(canvas, caption);
        return figure;
      });
    }));
  });
}

readLink();
Promise.all(drives.flatMap((drive) => [sheets.wait(drive.sheets), sheets.wait(drive.attention || [])])).then(() => {
  draw();
  main.dataset.ready = "true";
});
