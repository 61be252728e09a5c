// Replay a drive: the present moment, `now` in seconds, determines everything on the page.
"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const drive = JSON.parse(find("data").textContent);
  const steps = drive.action.length;
  const duration = steps * drive.step;
  const main = find("drive"), scrub = find("scrub"), play = find("play"), rate = find("rate");
  const attention = find("attention"), over = find("over");
  const frameSheets = [...document.querySelectorAll("img.frame-sheet")];
  const attentionSheets = [...document.querySelectorAll("img.attention-sheet")];
  const picture = find("picture").getContext("2d", { willReadFrequently: true });
  const { width, height } = picture.canvas;
  const scratch = document.createElement("canvas");
  scratch.width = width;
  scratch.height = height;
  const overlay = scratch.getContext("2d", { willReadFrequently: true });
  let now = 0, playing = false, lastTick = null;

  const stepOf = (time) => Math.min(steps, Math.floor(time / drive.step + 1e-6));
  const frameOf = (step) => Math.min(drive.frames - 1, Math.floor(step / drive.interval));

  // Draw one frame of the sheets onto a canvas.
  function drawFrame(sheets, number, target) {
    const perSheet = drive.columns * drive.rows, sheet = sheets[Math.floor(number / perSheet)];
    const k = number % perSheet;
    const left = (k % drive.columns) * width, top = Math.floor(k / drive.columns) * height;
    target.drawImage(sheet, left, top, width, height, 0, 0, width, height);
  }

  function drawPicture(number) {
    drawFrame(frameSheets, number, picture);
    if (!attention || !attention.checked) return;
    drawFrame(attentionSheets, number, overlay);
    const pixels = overlay.getImageData(0, 0, width, height), bytes = pixels.data;
    for (let i = 0; i < bytes.length; i += 4) {
      bytes[i + 3] = bytes[i] * 0.85;  // more attention is more opaque
      bytes[i] = 214; bytes[i + 1] = 0; bytes[i + 2] = 140;
    }
    overlay.putImageData(pixels, 0, 0);
    picture.drawImage(scratch, 0, 0);
  }

  // The driven path as text and the length of the text after each step: the path until a step is a prefix of the text.
  let driven = "";
  const ends = drive.x.map((x, k) => (driven += (k ? "L" : "M") + x + " " + drive.y[k]).length);
  const drivenPaths = document.querySelectorAll("path.driven"), car = document.querySelector("#map .car");
  const worlds = document.querySelectorAll("#close .world");

  function drawMaps(step) {
    const x = drive.x[step], y = drive.y[step], direction = drive.direction[step];
    if (x === null || y === null) return;
    drivenPaths.forEach((path) => path.setAttribute("d", driven.slice(0, ends[step])));
    car.setAttribute("transform", `translate(${x} ${y}) rotate(${-direction})`);
    const aroundCar = `rotate(${direction - 90}) translate(${-x} ${-y})`;
    worlds.forEach((part) => part.setAttribute("transform", aroundCar));
  }

  const signed = (value, digits) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
  const formatKnown = (value, format) => (value === null || value === undefined ? "–" : format(value));
  const formatCurvature = (value) => formatKnown(value, (k) => `${signed(k, 4)} 1/m`);
  const side = (value) => (Math.abs(value) < 0.005 ? "" : value > 0 ? " left" : " right");

  function drawNumbers(step) {
    find("current-time").textContent = `${(step * drive.step).toFixed(1)} of ${duration.toFixed(1)} s`;
    find("current-distance").textContent = formatKnown(drive.distance[step], (value) => `${value.toFixed(0)} m`);
    find("current-policy").textContent = formatCurvature(drive.action[step]);
    find("current-expert").textContent = formatCurvature(drive.advice[step]);
    const offset = (value) => `${Math.abs(value).toFixed(2)} m${side(value)}`;
    find("current-offset").textContent = formatKnown(drive.offset[step], offset);
    find("current-speed").textContent = formatKnown(drive.speed[step], (value) => `${value.toFixed(1)} m/s`);
  }

  function draw() {
    const step = stepOf(now);
    main.style.setProperty("--now", `${(100 * now) / (duration * drive.margin)}%`);
    main.dataset.step = step;
    scrub.value = step;
    scrub.setAttribute("aria-valuetext", `${(step * drive.step).toFixed(1)} seconds`);
    over.hidden = step < steps;
    drawPicture(frameOf(step));
    drawMaps(step);
    drawNumbers(step);
  }

  function go(time) {
    now = Math.max(0, Math.min(duration, time));
    draw();
  }

  // The browser calls this once per frame of the screen, with a time in milliseconds.
  function tick(time) {
    if (!playing) return;
    if (lastTick !== null) go(now + (Number(rate.value) * (time - lastTick)) / 1000);
    lastTick = time;
    if (now >= duration) return setPlaying(false);
    requestAnimationFrame(tick);
  }

  function setPlaying(on) {
    playing = on;
    lastTick = null;
    play.textContent = on ? "Pause" : "Play";
    play.setAttribute("aria-pressed", String(on));
    if (!on) return;
    if (now >= duration) now = 0;
    requestAnimationFrame(tick);
  }

  function changeRate(by) {
    rate.selectedIndex = Math.max(0, Math.min(rate.options.length - 1, rate.selectedIndex + by));
  }

  play.addEventListener("click", () => setPlaying(!playing));
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
    const target = event.target instanceof Element ? event.target : document.body;
    if (target === rate) return;  // a select element uses arrows and space itself
    const frame = drive.interval * drive.step, by = event.shiftKey ? frame : 1;
    const keys = {
      ArrowLeft: () => go(stepOf(now) * drive.step - by),
      ArrowRight: () => go(stepOf(now) * drive.step + by),
      "+": () => changeRate(1),
      "-": () => changeRate(-1),
      a: () => { if (attention) attention.click(); },
    };
    // Space presses a focused button or checkbox already.
    if (!target.closest("button, input[type=checkbox]")) keys[" "] = () => setPlaying(!playing);
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  // A printed page shows some moments of the drive side by side.
  function drawFilm() {
    const film = document.querySelector(".film"), count = Math.min(8, drive.frames);
    for (let k = 0; k < count; k++) {
      const number = count > 1 ? Math.round((k * (drive.frames - 1)) / (count - 1)) : 0;
      const figure = document.createElement("figure"), canvas = document.createElement("canvas");
      const caption = document.createElement("figcaption");
      canvas.width = width;
      canvas.height = height;
      drawFrame(frameSheets, number, canvas.getContext("2d"));
      caption.textContent = `${(number * drive.interval * drive.step).toFixed(1)} s`;
      figure.append(canvas, caption);
      film.append(figure);
    }
  }

  Promise.all([...frameSheets, ...attentionSheets].map((image) => image.decode())).then(() => {
    drawFilm();
    draw();
    main.dataset.ready = "true";
  });
})();
