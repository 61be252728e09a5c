// Replays a drive: one moment, `now` in seconds, decides everything that is shown.
"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const drive = JSON.parse(find("data").textContent);
  const steps = drive.action.length;
  const duration = steps * drive.step;
  const main = find("drive"), scrub = find("scrub"), play = find("play"), rate = find("rate");
  const attention = find("attention"), over = find("over");
  const seen = [...document.querySelectorAll("img.seen")], looked = [...document.querySelectorAll("img.looked")];
  const picture = find("picture").getContext("2d", { willReadFrequently: true });
  const { width, height } = picture.canvas;
  const scratch = document.createElement("canvas");
  scratch.width = width;
  scratch.height = height;
  const overlay = scratch.getContext("2d", { willReadFrequently: true });
  let now = 0, playing = false, before = null;

  const stepOf = (time) => Math.min(steps, Math.floor(time / drive.step + 1e-6));
  const pictureOf = (step) => Math.min(drive.pictures - 1, Math.floor(step / drive.every));

  function place(sheets, number, target, x, y) {
    const perSheet = drive.columns * drive.rows, sheet = sheets[Math.floor(number / perSheet)];
    const k = number % perSheet;
    const left = (k % drive.columns) * width, top = Math.floor(k / drive.columns) * height;
    target.drawImage(sheet, left, top, width, height, x, y, width, height);
  }

  function drawPicture(number) {
    place(seen, number, picture, 0, 0);
    if (!attention || !attention.checked) return;
    place(looked, number, overlay, 0, 0);
    const pixels = overlay.getImageData(0, 0, width, height), bytes = pixels.data;
    for (let i = 0; i < bytes.length; i += 4) {
      bytes[i + 3] = bytes[i] * 0.85;  // the more attention, the less one sees through it
      bytes[i] = 214; bytes[i + 1] = 0; bytes[i + 2] = 140;
    }
    overlay.putImageData(pixels, 0, 0);
    picture.drawImage(scratch, 0, 0);
  }

  // The driven path as text, and where in it each step ends: a part of the path is a part of the text.
  let way = "";
  const ends = drive.x.map((x, k) => (way += (k ? "L" : "M") + x + " " + drive.y[k]).length);
  const ways = document.querySelectorAll(".way"), car = document.querySelector("#map .car");
  const worlds = document.querySelectorAll("#close .world");

  function drawMaps(step) {
    const x = drive.x[step], y = drive.y[step], direction = drive.direction[step];
    if (x === null || y === null) return;
    ways.forEach((path) => path.setAttribute("d", way.slice(0, ends[step])));
    car.setAttribute("transform", `translate(${x} ${y}) rotate(${-direction})`);
    const turned = `rotate(${direction - 90}) translate(${-x} ${-y})`;
    worlds.forEach((part) => part.setAttribute("transform", turned));
  }

  const signed = (value, digits) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
  const told = (value, words) => (value === null || value === undefined ? "–" : words(value));
  const curvature = (value) => told(value, (k) => `${signed(k, 4)} 1/m`);
  const side = (value) => (Math.abs(value) < 0.005 ? "" : value > 0 ? " left" : " right");

  function drawNumbers(step) {
    find("time").textContent = `${(step * drive.step).toFixed(1)} of ${duration.toFixed(1)} s`;
    find("way").textContent = told(drive.way[step], (value) => `${value.toFixed(0)} m`);
    find("policy").textContent = curvature(drive.action[step]);
    find("driver").textContent = curvature(drive.advice[step]);
    find("beside").textContent = told(drive.offset[step], (value) => `${Math.abs(value).toFixed(2)} m${side(value)}`);
    find("pace").textContent = told(drive.speed[step], (value) => `${value.toFixed(1)} m/s`);
  }

  function draw() {
    const step = stepOf(now);
    main.style.setProperty("--now", `${(100 * now) / (duration * drive.margin)}%`);
    main.dataset.step = step;
    scrub.value = step;
    scrub.setAttribute("aria-valuetext", `${(step * drive.step).toFixed(1)} seconds`);
    over.hidden = step < steps;
    drawPicture(pictureOf(step));
    drawMaps(step);
    drawNumbers(step);
  }

  function go(time) {
    now = Math.max(0, Math.min(duration, time));
    draw();
  }

  function tick(moment) {
    if (!playing) return;
    if (before !== null) go(now + (Number(rate.value) * (moment - before)) / 1000);
    before = moment;
    if (now >= duration) return set(false);
    requestAnimationFrame(tick);
  }

  function set(on) {
    playing = on;
    before = null;
    play.textContent = on ? "Pause" : "Play";
    play.setAttribute("aria-pressed", String(on));
    if (!on) return;
    if (now >= duration) now = 0;
    requestAnimationFrame(tick);
  }

  function faster(by) {
    rate.selectedIndex = Math.max(0, Math.min(rate.options.length - 1, rate.selectedIndex + by));
  }

  play.addEventListener("click", () => set(!playing));
  scrub.addEventListener("input", () => go(Number(scrub.value) * drive.step));
  if (attention) attention.addEventListener("change", draw);
  document.querySelectorAll(".plot").forEach((plot) => {
    const jump = (event) => {
      const box = plot.getBoundingClientRect();
      go(((event.clientX - box.left) / box.width) * duration * drive.margin);
    };
    plot.addEventListener("pointerdown", jump);
    plot.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const on = event.target instanceof Element ? event.target : document.body;
    if (on === rate) return;  // it has its own use for arrows and space
    const little = drive.every * drive.step, by = event.shiftKey ? little : 1;
    const keys = {
      ArrowLeft: () => go(stepOf(now) * drive.step - by),
      ArrowRight: () => go(stepOf(now) * drive.step + by),
      "+": () => faster(1),
      "-": () => faster(-1),
      a: () => { if (attention) attention.click(); },
    };
    if (!on.closest("button, input[type=checkbox]")) keys[" "] = () => set(!playing);
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  // On paper nothing moves: some moments of the drive, side by side.
  function drawFilm() {
    const film = document.querySelector(".film"), count = Math.min(8, drive.pictures);
    for (let k = 0; k < count; k++) {
      const number = count > 1 ? Math.round((k * (drive.pictures - 1)) / (count - 1)) : 0;
      const frame = document.createElement("figure"), canvas = document.createElement("canvas");
      const words = document.createElement("figcaption");
      canvas.width = width;
      canvas.height = height;
      place(seen, number, canvas.getContext("2d"), 0, 0);
      words.textContent = `${(number * drive.every * drive.step).toFixed(1)} s`;
      frame.append(canvas, words);
      film.append(frame);
    }
  }

  Promise.all([...seen, ...looked].map((image) => image.decode())).then(() => {
    drawFilm();
    draw();
    main.dataset.ready = "true";
  });
})();
