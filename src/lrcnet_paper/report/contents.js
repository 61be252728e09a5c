// The contents: they mark the section that the reader is in, search the page, and fold on a narrow screen. The tiles
// show the claims of one verdict. Everything that is folded opens for printing.
(() => {
  const contents = document.querySelector(".contents");
  const search = contents.querySelector("input");
  const shown = contents.querySelector(".shown");
  const links = new Map([...contents.querySelectorAll("a")].map((a) => [a.hash.slice(1), a]));
  const sections = [...links.keys()].map((id) => document.getElementById(id));
  const tiles = [...document.querySelectorAll(".tile")];
  const claims = [...document.querySelectorAll(".table[aria-label=Claims] tbody tr")];
  const narrow = window.matchMedia("(max-width: 1099px)");

  const fold = () => { contents.open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
  contents.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest("a")) contents.open = false;
  });

  const mark = () => {
    const line = window.innerHeight / 4;
    const visible = sections.filter((section) => !section.hidden);
    const passed = visible.filter((section) => section.getBoundingClientRect().top <= line);
    const current = passed.length ? passed[passed.length - 1] : visible[0];
    for (const [id, link] of links) {
      if (!current || id !== current.id) link.removeAttribute("aria-current");
      else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        // Scrolls the list alone; scrollIntoView would move the page too.
        contents.scrollTop = Math.max(0, link.offsetTop - contents.clientHeight / 2);
      }
    }
  };
  document.addEventListener("scroll", mark, { passive: true });
  window.addEventListener("resize", mark);

  const texts = new Map(sections.map((section) => [section, section.textContent.toLowerCase()]));
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const pressed = tiles.find((tile) => tile.getAttribute("aria-pressed") === "true");
    const verdict = pressed && pressed.dataset.verdict;
    for (const row of claims) row.hidden = Boolean(verdict) && !row.querySelector(`.verdict.${verdict}`);
    for (const section of sections) {
      const found = words.every((word) => texts.get(section).includes(word));
      const rows = claims.filter((row) => !row.hidden && section.contains(row));
      const kept = section.id === "overview" || (found && (!verdict || rows.length > 0));
      section.hidden = !kept;
      links.get(section.id).parentElement.hidden = !kept;
      if (verdict) rows.forEach((row) => { const box = row.closest("details"); if (box) box.open = true; });
    }
    const count = sections.filter((section) => !section.hidden && section.id !== "overview").length;
    const matching = claims.filter((row) => !row.hidden && !row.closest("[hidden]")).length;
    shown.textContent = words.length || verdict ? `${count} sections, ${matching} claims shown` : "";
    mark();
  };
  search.addEventListener("input", filter);
  for (const tile of tiles) {
    tile.addEventListener("click", () => {
      const press = tile.getAttribute("aria-pressed") !== "true";
      for (const other of tiles) other.setAttribute("aria-pressed", String(press && other === tile));
      filter();
    });
  }

  // A link to something folded opens it.
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let box = target && target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    if (target) target.scrollIntoView();
  };
  window.addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("main details:not([open])")];
    for (const box of closed) box.open = true;
  });
  window.addEventListener("afterprint", () => { for (const box of closed) box.open = false; });
  mark();
})();
