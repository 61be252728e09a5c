// The camera picture of one policy: the frame, its noise, the attention over it, and the edges of the lane.

// Images of many frames; each is decoded when it is first needed, and only the latest are kept.
function makeSheets(columns, rows, redraw) {
  const images = new Map(), most = 12;

  function load(url) {
    let image = images.get(url);
    if (image) {
      images.delete(url);  // put it at the end of the queue
    } else {
      image = new Image();
      image.src = url;
      image.ready = image.decode().then(() => { image.decoded = true; redraw(); });
    }
    images.set(url, image);
    for (const old of [...images.keys()].slice(0, Math.max(0, images.size - most))) images.delete(old);
    return image;
  }

  // Draw a frame onto the whole of a canvas; return whether it could be drawn.
  function draw(urls, number, width, height, target) {
    const image = load(urls[Math.floor(number / (columns * rows))]);
    if (!image.decoded) return false;
    const k = number % (columns * rows);
    const left = (k % columns) * width, top = Math.floor(k / columns) * height;
    target.drawImage(image, left, top, width, height, 0, 0, target.canvas.width, target.canvas.height);
    return true;
  }

  return { draw, wait: (urls) => Promise.all(urls.map((url) => load(url).ready)) };
}

// Normally distributed numbers; the same for each frame, so that a paused picture does not flicker.
const NORMAL = (() => {
  const numbers = new Float32Array(1 << 16);
  let seed = 1;
  const uniform = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let i = 0; i < numbers.length; i++) {
    numbers[i] = Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  }
  return numbers;
})();

function addNoise(bytes, variance, number) {
  const spread = 255 * Math.sqrt(variance);
  for (let i = 0, at = number * 7919; i < bytes.length; i++) {
    if (i % 4 !== 3) bytes[i] = bytes[i] + spread * NORMAL[at++ % NORMAL.length];  // clamped by the array
  }
}

function makePicture(screen, camera, sheets) {
  const picture = screen.querySelector(".picture").getContext("2d", { willReadFrequently: true });
  const lines = screen.querySelector(".lines").getContext("2d", { willReadFrequently: true });
  const { width, height } = picture.canvas, scale = lines.canvas.width / width;
  const scratch = document.createElement("canvas");
  scratch.width = width;
  scratch.height = height;
  const overlay = scratch.getContext("2d", { willReadFrequently: true });

  function drawAttention(drive, number, strength) {
    if (!sheets.draw(drive.attention, number, width / 2, height / 2, overlay)) return;
    const pixels = overlay.getImageData(0, 0, width, height), bytes = pixels.data;
    for (let i = 0; i < bytes.length; i += 4) {
      bytes[i + 3] = bytes[i] * strength;  // more attention is more opaque
      bytes[i] = 214; bytes[i + 1] = 0; bytes[i + 2] = 140;
    }
    overlay.putImageData(pixels, 0, 0);
    picture.drawImage(scratch, 0, 0);
  }

  function drawLine(points, colour, wide) {
    lines.beginPath();
    points.forEach(([x, y], k) => (k ? lines.lineTo(x * scale, y * scale) : lines.moveTo(x * scale, y * scale)));
    lines.strokeStyle = colour;
    lines.lineWidth = wide;
    lines.stroke();
  }

  function drawEdges(road, car) {
    for (const left of camera.edges) {
      const points = projectLine(camera, road, car, left);
      drawLine(points, "rgba(0,0,0,.55)", 5);
      drawLine(points, "#5fd0ff", 2.5);
    }
  }

  // Fill the strip of ground between two lines beside the road.
  function fillStrip(road, car, right, left, colour) {
    const outline = [...projectLine(camera, road, car, left, 160),
      ...projectLine(camera, road, car, right, 160).reverse()];
    if (outline.length < 3) return;
    lines.beginPath();
    outline.forEach(([x, y], k) => (k ? lines.lineTo(x * scale, y * scale) : lines.moveTo(x * scale, y * scale)));
    lines.fillStyle = colour;
    lines.fill();
  }

  return {
    // Show one frame of a drive.
    show(drive, road, number, car, options) {
      lines.clearRect(0, 0, lines.canvas.width, lines.canvas.height);
      if (!sheets.draw(drive.sheets, number, width, height, picture)) return;
      if (options.noise) {
        const pixels = picture.getImageData(0, 0, width, height);
        addNoise(pixels.data, options.noise, number);
        picture.putImageData(pixels, 0, 0);
      }
      if (options.strength && drive.attention) drawAttention(drive, number, options.strength);
      if (options.edges && car) drawEdges(road, car);
    },

    // Draw the view of a car that no camera recorded: sky, grass, asphalt and lines.
    sketch(road, car) {
      const { canvas } = lines, horizon = camera.horizon * scale;
      lines.fillStyle = "#a9c4de";
      lines.fillRect(0, 0, canvas.width, horizon);
      lines.fillStyle = "#5d7a45";
      lines.fillRect(0, horizon, canvas.width, canvas.height - horizon);
      fillStrip(road, car, camera.asphalt[0], camera.asphalt[1], "#6b6b70");
      for (const left of camera.edges) fillStrip(road, car, left - 0.08, left + 0.08, "#f4f4f4");
    },
  };
}
