// The inside of sequence models: the chosen sequence, the order of neurons and the ablated neuron determine everything.

const SVG = "http://www.w3.org/2000/svg";
const find = (id) => document.getElementById(id);
const data = JSON.parse(find("data").textContent);
const sequence = find("sequence"), order = find("order");
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
const signed = (value, digits = 3) => `${value < 0 ? "−" : ""}${Number(Math.abs(value).toPrecision(digits))}`;
const colourOf = (k) => data.colours[k % data.colours.length];
const ablated = data.models.map(() => null);

const RAMP = (() => {
  const known = data.ramp.map((colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)));
  return Array.from({ length: 256 }, (_, level) => {
    const at = (level / 255) * (known.length - 1), low = Math.min(Math.floor(at), known.length - 2);
    return known[low].map((part, i) => Math.round(part + (known[low + 1][i] - part) * (at - low)));
  });
})();

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// A key of the legend: a patch of colour and a word.
function key(colour, text) {
  const made = element("span", "key"), patch = element("i");
  patch.style.background = colour;
  made.append(patch, text);
  return made;
}

// A figure with a caption and a plot; `rows` sets its height in the style sheet.
function makePanel(parent, kind, title, rows) {
  const figure = element("figure", `panel ${kind}`), caption = element("figcaption"), plot = element("div", "plot");
  figure.style.setProperty("--rows", rows);
  caption.append(element("b", "", title));
  figure.append(caption, plot);
  parent.append(figure);
  return { figure, caption, plot };
}

function addTick(plot, text, share) {
  const tick = element("span", "tick", text);
  tick.style.top = `${100 * share}%`;
  plot.append(tick);
}

// Lines over time: points are [x share, y share] from the left and the top.
function drawLines(plot, lines) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 1000 100");
  svg.setAttribute("preserveAspectRatio", "none");
  for (const { points, colour, className } of lines) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", points.map(([x, y], i) => `${i ? "L" : "M"}${(1000 * x).toFixed(1)} ${(100 * y).toFixed(1)}`).join(""));
    path.setAttribute("stroke", colour);
    if (className) path.setAttribute("class", className);
    svg.append(path);
  }
  plot.append(svg);
}

function drawInputs(parent, traces) {
  if (!traces.length) return;
  const { plot } = makePanel(parent, "inputs", "Inputs", traces.length);
  drawLines(plot, traces.map(({ values }, row) => {
    const low = Math.min(...values), high = Math.max(...values), span = high - low || 1;
    const points = values.map((value, i) =>
      [(i + 0.5) / values.length, (row + 0.9 - (0.8 * (value - low)) / span) / traces.length]);
    return { points, colour: "currentColor" };
  }));
  traces.forEach(({ name }, row) => {
    const label = element("span", "row-name", name);
    label.style.top = `${(100 * (row + 0.08)) / traces.length}%`;
    plot.append(label);
  });
}

// A strip of pictures that were taken along the axis.
function drawPictures(parent, url) {
  if (!url) return;
  const { plot } = makePanel(parent, "pictures", "Camera", 1), picture = element("img");
  picture.src = url;
  picture.alt = "Frames of the camera, evenly spaced over the sequence";
  plot.append(picture);
}

// Edges of the stretches of the axis that belong to each answer.
function stretches(readings, length) {
  return readings.map((reading, i) => [(i ? readings[i - 1] : 0) / length, reading / length]);
}

function bestClass(values) {
  return values.reduce((best, value, k) => (value > values[best] ? k : best), 0);
}

function drawLabels(parent, model, truth, readings, values, length) {
  const { caption, plot } = makePanel(parent, "labels", "Labels: true above, predicted below", 2);
  const canvas = element("canvas");
  canvas.width = 1000;
  canvas.height = 9;  // four rows, a gap, four rows
  const pen = canvas.getContext("2d"), predicted = values.map(bestClass);
  stretches(readings, length).forEach(([from, to], i) => {
    [truth[i], predicted[i]].forEach((k, row) => {
      pen.fillStyle = colourOf(k);
      pen.fillRect(Math.floor(1000 * from), 5 * row, Math.ceil(1000 * (to - from)) + 1, 4);
    });
  });
  plot.append(canvas);
  const present = [...new Set([...truth, ...predicted])].sort((a, b) => a - b);
  caption.append(...present.map((k) => key(colourOf(k), model.classes[k])));
}

function drawAnswers(parent, model, index, part, length) {
  const { readings, values } = part.answers, changed = ablated[index] === null ? null : part.answers.ablated[ablated[index]];
  const target = part.target;
  const numbers = [...values, ...(changed || []), ...(target || [])].flat();
  const low = model.probabilities ? 0 : Math.min(...numbers), high = model.probabilities ? 1 : Math.max(...numbers);
  const title = model.probabilities ? "Predicted probabilities" : "Answers";
  const { caption, plot } = makePanel(parent, "answers", changed ? `${title} without neuron ${ablated[index] + 1}` : title, 1);
  // Classes that never matter here would only fill the legend.
  const mean = model.classes.map((_, k) => values.reduce((sum, row) => sum + row[k], 0) / values.length);
  const most = Math.max(...values.map((row) => Math.max(...row)));
  const shown = model.classes.map((_, k) => k).filter((k) => !model.probabilities ||
    values.some((row) => row[k] > 0.1 * most) || (changed && changed.some((row) => row[k] > 0.1 * most)))
    .sort((a, b) => mean[b] - mean[a]).slice(0, 8);
  const line = (rows, k) => rows.map((row, i) => [(readings[i] - 0.5) / length, 1 - (row[k] - low) / (high - low || 1)]);
  if (target) drawLines(plot, [{ points: line(target.map((value) => [value]), 0), colour: "currentColor", className: "target" }]);
  drawLines(plot, shown.flatMap((k) => [
    ...(changed ? [{ points: line(values, k), colour: colourOf(k), className: "before" }] : []),
    { points: line(changed || values, k), colour: colourOf(k) },
  ]));
  addTick(plot, signed(high, 2), 0);
  addTick(plot, signed(low, 2), 1);
  caption.append(...shown.map((k) => key(colourOf(k), model.classes[k])));
  if (target) caption.append(key("currentColor", model.target));
  if (!changed) return;
  const last = values.length - 1, k = model.probabilities ? bestClass(values[last]) : 0;
  caption.append(element("span", "", `dotted: with it; “${model.classes[k]}” at the end: ` +
    `${signed(values[last][k])} with it, ${signed(changed[last][k])} without`));
}

function decode(panel) {
  if (!panel.bytes) panel.bytes = Uint8Array.from(atob(panel.levels), (letter) => letter.charCodeAt(0));
  return panel.bytes;
}

function drawUnits(parent, model, index, quantity, panel, neurons, readout) {
  const { caption, plot } = makePanel(parent, "units", quantity.label, model.units);
  plot.dataset.quantity = quantity.key;
  const show = (share) => {
    const value = quantity.low + share * (quantity.high - quantity.low);
    return quantity.log ? String(Number((10 ** value).toPrecision(2))) : signed(value);
  };
  const legend = element("span", "key", show(0)), scale = element("i", "scale");
  scale.style.background = `linear-gradient(to right,${data.ramp.join()})`;
  legend.append(scale, show(1));
  caption.append(legend);
  const canvas = element("canvas"), levels = decode(panel);
  canvas.width = panel.columns;
  canvas.height = model.units;
  const pen = canvas.getContext("2d"), pixels = pen.createImageData(panel.columns, model.units);
  neurons.forEach((k, row) => {
    for (let column = 0; column < panel.columns; column++) {
      const at = 4 * (row * panel.columns + column), [red, green, blue] = RAMP[levels[column * model.units + k]];
      pixels.data.set([red, green, blue, 255], at);
    }
  });
  pen.putImageData(pixels, 0, 0);
  plot.append(canvas);
  addTick(plot, neurons[0] + 1, 0.5 / model.units);
  addTick(plot, neurons[model.units - 1] + 1, 1 - 0.5 / model.units);
  const marked = neurons.indexOf(ablated[index]);
  if (marked >= 0) {
    const band = element("i", "band");
    band.style.top = `${(100 * marked) / model.units}%`;
    band.style.height = `${100 / model.units}%`;
    plot.append(band);
  }
  const neuronAt = (event) => {
    const box = plot.getBoundingClientRect();
    return neurons[clamp(Math.floor(((event.clientY - box.top) / box.height) * model.units), 0, model.units - 1)];
  };
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect(), k = neuronAt(event);
    const column = clamp(Math.floor(((event.clientX - box.left) / box.width) * panel.columns), 0, panel.columns - 1);
    readout.textContent = `neuron ${k + 1}, ${quantity.label}: ${show(levels[column * model.units + k] / 255)}`;
  });
  plot.addEventListener("click", (event) => {
    const k = neuronAt(event);
    ablated[index] = ablated[index] === k ? null : k;
    draw();
  });
}

function drawAxis(parent, length) {
  const axis = element("div", "axis");
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const mark = element("span", "", share ? String(Math.round(share * length)) : `${data.unit} 0`);
    mark.style.left = `${100 * share}%`;
    axis.append(mark);
  }
  parent.append(axis);
}

function drawModel(parent, model, index) {
  const number = Number(sequence.value), part = model.sequences[number], length = data.lengths[number];
  const neurons = model.orders[order.value] || model.orders.number, readout = element("p", "readout soft");
  parent.replaceChildren();
  if (data.models.length > 1) parent.append(element("h2", "", model.name));
  drawPictures(parent, data.pictures[number]);
  drawInputs(parent, data.inputs[Math.min(index, data.inputs.length - 1)][number]);
  if (part.answers) {
    const changed = ablated[index] === null ? part.answers.values : part.answers.ablated[ablated[index]];
    if (part.truth) drawLabels(parent, model, part.truth, part.answers.readings, changed, length);
    drawAnswers(parent, model, index, part, length);
  }
  for (const quantity of model.quantities) {
    drawUnits(parent, model, index, quantity, part.panels[quantity.key], neurons, readout);
  }
  drawAxis(parent, length);
  parent.append(readout);
}

function draw() {
  const number = Number(sequence.value);
  find("sequence-name").textContent = `${data.names[number]}, ${data.lengths[number]} ${data.unit}s`;
  document.querySelectorAll(".model").forEach((parent, k) => drawModel(parent, data.models[k], k));
  find("inside").dataset.ready = "true";
  find("inside").dataset.ablated = ablated.map((k) => (k === null ? "" : k + 1)).join();
}

// One line through all panels at the reading under the pointer.
find("inside").addEventListener("pointermove", (event) => {
  const plot = event.target.closest(".plot");
  document.querySelectorAll(".cursor").forEach((line) => line.remove());
  if (!plot) return;
  const box = plot.getBoundingClientRect(), share = clamp((event.clientX - box.left) / box.width, 0, 1);
  document.querySelectorAll(".plot").forEach((other) => {
    const line = element("i", "cursor");
    line.style.left = `${100 * share}%`;
    other.append(line);
  });
});
sequence.addEventListener("input", draw);
order.addEventListener("input", draw);
draw();
