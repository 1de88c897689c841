"use strict";
// Light or dark: as the system says, until the button is pressed; then as the reader said. The page hears "theme".

(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const memory = "dither-theme";

  window.dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  function show() {
    document.getElementById("theme").setAttribute("aria-pressed", dark());
    dispatchEvent(new Event("theme"));
  }

  function choose() {
    root.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem(memory, root.dataset.theme);
    } catch {} // a browser may refuse a file its memory
    show();
  }

  try {
    const chosen = localStorage.getItem(memory);
    if (chosen) root.dataset.theme = chosen;
  } catch {}
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", choose);
    system.addEventListener("change", show);
    show();
  });
})();
