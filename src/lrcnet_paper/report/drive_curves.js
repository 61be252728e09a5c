// Curves over time and the activity of neurons.

function makeChart(figure, stepsPerWidth) {
  const svg = figure.querySelector("svg"), low = Number(figure.dataset.low), high = Number(figure.dataset.high);
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const down = (value) => (height * (high - clamp(value, low, high))) / (high - low);

  function pathOf(values) {
    let text = "", pen = "M";
    values.forEach((value, k) => {
      if (value === null) { pen = "M"; return; }
      text += `${pen}${((k * width) / stepsPerWidth).toFixed(1)} ${down(value).toFixed(1)}`;
      pen = "L";
    });
    return text;
  }

  // Bars at the edges of the plot where a curve is beyond them.
  function beyondOf(values) {
    let text = "";
    values.forEach((value, k) => {
      if (value === null || (value >= low && value <= high)) return;
      const x = (k * width) / stepsPerWidth;
      text += `M${x.toFixed(1)} ${value > high ? 2 : height - 2}h${Math.max(2, width / stepsPerWidth).toFixed(1)}`;
    });
    return text;
  }

  return {
    set(kind, values) {
      const beyond = beyondOf(values), key = figure.querySelector(`.beyond-key.${kind}`);
      svg.querySelector(`.curve.${kind}`).setAttribute("d", pathOf(values));
      svg.querySelector(`.beyond.${kind}`).setAttribute("d", beyond);
      if (key) key.hidden = !beyond;
    },
  };
}

// 256 colours between the samples of a colour map.
function makeRamp(samples) {
  const parse = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  const known = samples.map(parse);
  return Array.from({ length: 256 }, (_, level) => {
    const at = (level / 255) * (known.length - 1), low = Math.min(Math.floor(at), known.length - 2);
    return known[low].map((part, i) => Math.round(part + (known[low + 1][i] - part) * (at - low)));
  });
}

// The activity of a drive: one byte per step and neuron, over the neuron's whole range.
function decodeActivity(drive) {
  if (!drive.levels) {
    const text = atob(drive.activity);
    drive.levels = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  }
  const count = drive.low.length, steps = drive.action.length;
  const value = (step, k) => drive.least[k] + (drive.levels[step * count + k] / 255) * (drive.most[k] - drive.least[k]);
  const colour = (step, k) => {
    const span = drive.high[k] - drive.low[k];
    return span > 0 ? clamp(Math.round((255 * (value(step, k) - drive.low[k])) / span), 0, 255) : 128;
  };
  return { count, steps, value, colour };
}

function drawActivity(canvas, activity, ramp, stepsPerWidth) {
  canvas.width = activity.steps;
  canvas.height = activity.count;
  canvas.style.width = `${(100 * activity.steps) / stepsPerWidth}%`;
  const context = canvas.getContext("2d"), pixels = context.createImageData(activity.steps, activity.count);
  for (let k = 0, i = 0; k < activity.count; k++) {
    for (let step = 0; step < activity.steps; step++, i += 4) {
      const [red, green, blue] = ramp[activity.colour(step, k)];
      pixels.data[i] = red; pixels.data[i + 1] = green; pixels.data[i + 2] = blue; pixels.data[i + 3] = 255;
    }
  }
  context.putImageData(pixels, 0, 0);
}
