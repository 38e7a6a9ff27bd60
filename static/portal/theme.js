// Runs before the page is painted: marks that scripts work, and applies the colours chosen on an earlier visit.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch {
    // Storage is switched off: the system's colours apply.
  }
})();
