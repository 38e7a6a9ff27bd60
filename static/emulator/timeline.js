// The timelines of a page: one run, or several side by side, which all show the same times. The server sends what fits
// the width of the screen (emulator/pages/window.py), so a year is as quick as an hour. Wheel, drag, buttons and keys
// move and zoom; a click on a task shows its decisions.
(() => {
  const LEAST_SECS = 60;
  const CLICK_PIXELS = 4;
  const { runTime, timelineDrawing } = window.cobblestone;
  const roots = [...document.querySelectorAll("[data-timeline]")];
  if (!roots.length) return;
  const duration = Math.max(...roots.map((root) => Number(root.dataset.duration)));
  const view = startOf(new URLSearchParams(location.search).get("at"));
  const timelines = roots.map(timeline);
  let timer = 0;

  // A link to a moment shows the day around it.
  function startOf(at) {
    const middle = Number(at);
    if (at === null || !Number.isFinite(middle)) return { from: 0, to: duration };
    const span = Math.min(86400, duration);
    const from = Math.min(Math.max(middle - span / 2, 0), duration - span);
    return { from, to: from + span };
  }

  function timeline(root) {
    const canvas = root.querySelector("canvas");
    const words = root.querySelector("[data-timeline-text]");
    const facts = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const drawing = timelineDrawing(canvas, facts, view);
    let drawn = null;
    let asked = 0;

    function draw() {
      drawing.draw(drawn);
      if (drawn) root.dataset.drawn = `${Math.round(view.from)} ${Math.round(view.to)}`;
    }

    async function fetchWindow() {
      const mine = ++asked;
      const url = `${root.dataset.url}?from=${view.from}&to=${view.to}&width=${drawing.plotWidth()}`;
      let answer;
      try {
        answer = await fetch(url, { headers: { Accept: "application/json" } });
      } catch {
        answer = null;
      }
      if (mine !== asked) return;
      if (!answer || !answer.ok) {
        words.textContent = gettext("The timeline could not be loaded. Check your connection, then choose “Whole run”.");
        return;
      }
      drawn = await answer.json();
      draw();
      words.textContent = summary(drawn).join(" · ");
    }

    function showJob(job) {
      const target = root.querySelector("[data-job]");
      if (job === undefined || !target) return;
      window.htmx.ajax("GET", `${target.dataset.job}?job=${job}`, { target, swap: "innerHTML" });
    }

    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, from: view.from, to: view.to, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) {
        const found = drawing.at(event.offsetX, event.offsetY);
        if (found) words.textContent = found.words;
        return;
      }
      drag.moved ||= Math.abs(event.clientX - drag.x) > CLICK_PIXELS;
      if (!drag.moved) return;
      const by = ((drag.x - event.clientX) / drawing.plotWidth()) * (drag.to - drag.from);
      show(drag.from + by, drag.to + by);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved) showJob(drawing.at(event.offsetX, event.offsetY)?.job);
      drag = null;
    });
    canvas.addEventListener("pointercancel", () => (drag = null));
    canvas.addEventListener(
      "wheel",
      (event) => {
        // Only with a key held: the page must still scroll.
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
        event.preventDefault();
        zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, drawing.secsAt(event.offsetX));
      },
      { passive: false },
    );
    canvas.addEventListener("dblclick", (event) => zoom(0.4, drawing.secsAt(event.offsetX)));
    canvas.addEventListener("keydown", (event) => {
      const action = keys[event.key];
      if (!action) return;
      event.preventDefault();
      actions[action]();
    });
    return { root, draw, fetchWindow, readColours: drawing.readColours };
  }

  function summary({ rpcs, misses }) {
    const span = interpolate(gettext("%(from)s to %(to)s"), { from: runTime(view.from), to: runTime(view.to) }, true);
    const contacts = ngettext("%(number)s contact", "%(number)s contacts", rpcs.count);
    const late = ngettext("%(number)s late task", "%(number)s late tasks", misses.count);
    return [
      span,
      interpolate(contacts, { number: rpcs.count }, true),
      ...(misses.count ? [interpolate(late, { number: misses.count }, true)] : []),
    ];
  }

  function show(from, to) {
    const span = Math.min(Math.max(to - from, Math.min(LEAST_SECS, duration)), duration);
    view.from = Math.min(Math.max(from, 0), duration - span);
    view.to = view.from + span;
    timelines.forEach(({ draw }) => draw());
    clearTimeout(timer);
    timer = setTimeout(() => timelines.forEach(({ fetchWindow }) => fetchWindow()), 80);
  }

  function zoom(factor, at = (view.from + view.to) / 2) {
    show(at - (at - view.from) * factor, at + (view.to - at) * factor);
  }

  function move(part) {
    const by = (view.to - view.from) * part;
    show(view.from + by, view.to + by);
  }

  const actions = {
    in: () => zoom(0.5),
    out: () => zoom(2),
    left: () => move(-0.25),
    right: () => move(0.25),
    all: () => show(0, duration),
  };
  const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", Home: "all" };
  document.querySelectorAll("[data-zoom]").forEach((button) => button.addEventListener("click", actions[button.dataset.zoom]));

  function recolour() {
    timelines.forEach(({ draw, readColours }) => {
      readColours();
      draw();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  new MutationObserver(recolour).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const resized = new ResizeObserver(() => show(view.from, view.to));
  roots.forEach((root) => resized.observe(root));
})();
