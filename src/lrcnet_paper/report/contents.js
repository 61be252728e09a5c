// Marks the section that the reader is in, and folds the contents on a narrow screen.
(() => {
  const contents = document.querySelector(".contents");
  const links = new Map([...contents.querySelectorAll("a")].map((a) => [a.hash.slice(1), a]));
  const sections = [...links.keys()].map((id) => document.getElementById(id));
  const narrow = window.matchMedia("(max-width: 1099px)");
  const fold = () => { contents.open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
  contents.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest("a")) contents.open = false;
  });
  const mark = () => {
    const line = window.innerHeight / 4;
    const passed = sections.filter((section) => section.getBoundingClientRect().top <= line);
    const current = passed.length ? passed[passed.length - 1] : sections[0];
    for (const [id, link] of links) {
      if (id !== current.id) link.removeAttribute("aria-current");
      else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        // Scrolls the list alone; scrollIntoView would move the page too.
        contents.scrollTop = Math.max(0, link.offsetTop - contents.clientHeight / 2);
      }
    }
  };
  document.addEventListener("scroll", mark, { passive: true });
  window.addEventListener("resize", mark);
  mark();
})();
