// The map of the whole road and the close-up around the car in front.

function makeMaps(root, count) {
  const all = (selector) => [...root.querySelectorAll(selector)];
  const cars = [...Array(count).keys()].map((k) => ({
    driven: all(`path.driven.policy-${k}`), ahead: all(`path.ahead.policy-${k}`), crash: all(`.crash.policy-${k}`),
    body: all(`.car.policy-${k}`), text: "", ends: [],
  }));
  const centre = all("path.centre-line, path.band"), worlds = all("#close .world");
  const you = all(".car.you"), paint = root.querySelector("#map .paint");
  const degrees = (angle) => (angle * 180) / Math.PI;

  function place(element, car) {
    element.toggleAttribute("hidden", !car);
    if (car) element.setAttribute("transform", `translate(${car.x} ${car.y}) rotate(${-degrees(car.direction)})`);
  }

  return {
    // Take over the drives that are shown from now on.
    select(drives, road) {
      const line = road.x.map((x, k) => `${k ? "L" : "M"}${x} ${road.y[k]}`).join("");
      centre.forEach((path) => path.setAttribute("d", line));
      drives.forEach((drive, k) => {
        const car = cars[k], last = drive.x.length - 1;
        // The path until a step is a prefix of the whole text.
        car.text = "";
        car.ends = drive.x.map((x, i) => (car.text += (i ? "L" : "M") + x + " " + drive.y[i]).length);
        car.ahead.forEach((path) => path.setAttribute("d", car.text));
        car.crash.forEach((cross) => {
          cross.toggleAttribute("hidden", !drive.crashed);
          cross.setAttribute("transform", `translate(${drive.x[last]} ${drive.y[last]})`);
        });
      });
    },

    // Show all cars; `wheel` is the place of the reader's own car, or null.
    show(drives, step, wheel) {
      drives.forEach((drive, k) => {
        const now = Math.min(step, drive.x.length - 1), x = drive.x[now], y = drive.y[now];
        if (x === null || y === null) return;
        cars[k].driven.forEach((path) => path.setAttribute("d", cars[k].text.slice(0, cars[k].ends[now])));
        cars[k].body.forEach((body) => place(body, carOf(drive, now)));
      });
      you.forEach((body) => place(body, wheel));
      const centred = wheel || carOf(drives[0], Math.min(step, drives[0].x.length - 1));
      if (!centred) return;
      const turn = `rotate(${degrees(centred.direction) - 90}) translate(${-centred.x} ${-centred.y})`;
      worlds.forEach((part) => part.setAttribute("transform", turn));
    },

    // Colour the driven road by a neuron: `colours` has one colour per step; null takes the paint off.
    paint(drive, colours) {
      paint.replaceChildren();
      root.querySelector("#map").classList.toggle("painted", Boolean(colours));
      if (!colours) return;
      for (let from = 0; from < colours.length;) {
        let to = from + 1;
        while (to < colours.length && colours[to] === colours[from]) to++;
        const path = document.createElementNS(paint.namespaceURI, "path");
        const points = drive.x.slice(from, to + 1).map((x, i) => `${x} ${drive.y[from + i]}`);
        path.setAttribute("d", `M${points.join("L")}`);
        path.setAttribute("stroke", colours[from]);
        paint.append(path);
        from = to;
      }
    },
  };
}

// Place of a drive's car at a step, or null if the world does not know it.
function carOf(drive, step) {
  if (drive.x[step] === null || drive.y[step] === null) return null;
  return { x: drive.x[step], y: drive.y[step], direction: (drive.direction[step] * Math.PI) / 180 };
}
