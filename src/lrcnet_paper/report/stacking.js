// Puts the panels of a figure below each other on a phone, where side by side their text would be too small to read.
(() => {
  const narrow = window.matchMedia("(max-width: 720px)");
  const MOST_PANELS = 12, MARGIN = 4;
  const namespace = "http://www.w3.org/2000/svg";

  const stack = (figure) => {
    const svg = figure.querySelector("svg:not(.panel)");
    const root = svg && svg.querySelector(":scope > g");
    const parts = root ? [...root.children].filter((part) => /-(axes|legend|text)_\d+$/.test(part.id)) : [];
    const panels = parts.filter((part) => /-axes_\d+$/.test(part.id));
    if (panels.length > MOST_PANELS) figure.classList.add("wide");
    if (!panels.length || panels.length > MOST_PANELS || figure.classList.contains("stacked")) return;
    // Boxes are measured before anything is moved.
    const boxes = new Map(parts.map((part) => [part, part.getBBox()]));
    if (![...boxes.values()].some((box) => box.width)) return; // folded away; done when it opens
    const after = svg.nextSibling;
    for (const part of parts) {
      const box = boxes.get(part);
      if (!box.width) continue;
      const place = document.createComment(part.id);
      part.replaceWith(place);
      if (/-text_\d+$/.test(part.id)) {
        const finding = document.createElement("p");
        finding.className = "finding panel";
        finding.textContent = [...part.querySelectorAll("text")].map((line) => line.textContent).join(" ");
        figure.insertBefore(finding, svg);
        restores.push(() => { finding.remove(); place.replaceWith(part); });
        continue;
      }
      const own = document.createElementNS(namespace, "svg");
      own.setAttribute("class", "panel");
      own.setAttribute("aria-hidden", "true");
      own.setAttribute("viewBox", [box.x - MARGIN, box.y - MARGIN, box.width + 2 * MARGIN, box.height + 2 * MARGIN].join(" "));
      own.style.maxWidth = `${Math.round(1.7 * (box.width + 2 * MARGIN))}px`;
      for (const style of svg.querySelectorAll("style")) own.append(style.cloneNode(true));
      own.append(part);
      figure.insertBefore(own, after);
      restores.push(() => { place.replaceWith(part); own.remove(); });
    }
    figure.classList.add("stacked");
    restores.push(() => figure.classList.remove("stacked"));
  };

  let restores = [];
  const arrange = () => {
    if (narrow.matches) document.querySelectorAll("main figure").forEach(stack);
    else { restores.reverse().forEach((restore) => restore()); restores = []; }
  };
  narrow.addEventListener("change", arrange);
  document.addEventListener("toggle", () => { if (narrow.matches) arrange(); }, true);
  arrange();
})();
