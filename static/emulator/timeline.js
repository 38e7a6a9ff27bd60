// The timeline of a run: lanes with what ran, marks, and the lines beneath. The server sends what fits the width of
// the screen (emulator/pages/window.py), so a year is as quick as an hour. Wheel, drag, buttons and keys move and zoom.
(() => {
  const LANE = 22;
  const GAP = 4;
  const LEFT = 84;
  const AXIS = 26;
  const MARKS = 18;
  const LINES = 72;
  const LEAST_SECS = 60;
  const MANY_LANES = 24;

  const { token } = window.cobblestone;
  const root = document.querySelector("[data-timeline]");
  if (!root) return;
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const lanes = read("timeline-lanes");
  const projects = read("timeline-projects");
  const kinds = read("timeline-kinds");
  const palette = read("timeline-palette");
  const duration = Number(root.dataset.duration);
  const canvas = root.querySelector("canvas");
  const words = root.querySelector("[data-timeline-text]");
  const pen = canvas.getContext("2d");
  const view = { from: 0, to: duration };
  let drawn = null;
  let colours = {};
  let width = 0;
  let asked = 0;
  let timer = 0;

  const laneHeight = lanes.length > MANY_LANES ? Math.max(4, Math.floor((LANE * MANY_LANES) / lanes.length)) : LANE;
  const laneGap = lanes.length > MANY_LANES ? 1 : GAP;
  const lanesHeight = lanes.length * (laneHeight + laneGap);
  const height = AXIS + lanesHeight + MARKS + 2 * LINES + 44;

  function readColours() {
    colours = {
      data: Array.from({ length: 8 }, (_, index) => token(`--data-${index}`)),
      other: token("--data-other"),
      text: token("--text"),
      muted: token("--text-muted"),
      line: token("--line"),
      sunk: token("--surface-sunk"),
      error: token("--error"),
      accent: token("--accent"),
    };
  }

  const shade = (project) => colours.data[palette[project]];
  const x = (secs) => LEFT + ((secs - view.from) / (view.to - view.from)) * (width - LEFT);
  const secsAt = (pixel) => view.from + ((pixel - LEFT) / (width - LEFT)) * (view.to - view.from);
  const laneTop = (lane) => AXIS + lane * (laneHeight + laneGap);

  function time(secs) {
    const day = Math.floor(secs / 86400);
    const pad = (value) => String(Math.floor(value)).padStart(2, "0");
    const clock = `${pad((secs / 3600) % 24)}:${pad((secs / 60) % 60)}`;
    return interpolate(gettext("day %(day)s, %(time)s"), { day, time: clock }, true);
  }

  const dayLabel = (day) => interpolate(gettext("day %(day)s"), { day }, true);

  function tickSecs() {
    const steps = [60, 300, 900, 3600, 3 * 3600, 6 * 3600, 86400, 2 * 86400, 7 * 86400, 30 * 86400, 91 * 86400, 365 * 86400];
    const least = (view.to - view.from) / Math.max(2, (width - LEFT) / 110);
    return steps.find((step) => step >= least) ?? Math.ceil(least / (365 * 86400)) * 365 * 86400;
  }

  function drawAxis() {
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const step = tickSecs();
    for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
      pen.strokeStyle = colours.line;
      pen.beginPath();
      pen.moveTo(x(at), AXIS - 4);
      pen.lineTo(x(at), height - 4);
      pen.stroke();
      pen.fillStyle = colours.muted;
      pen.textAlign = x(at) > width - 40 ? "right" : "center";
      pen.fillText(step >= 86400 ? dayLabel(Math.round(at / 86400)) : time(at), Math.max(x(at), LEFT + 20), 10);
    }
  }

  function drawLanes() {
    lanes.forEach(([kind, number], lane) => {
      pen.fillStyle = colours.sunk;
      pen.fillRect(LEFT, laneTop(lane), width - LEFT, laneHeight);
      if (laneHeight >= 12) {
        pen.fillStyle = colours.muted;
        pen.textAlign = "left";
        pen.fillText(`${kind} ${number}`, 0, laneTop(lane) + laneHeight / 2, LEFT - 8);
      }
    });
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width - LEFT, height);
    pen.clip();
    drawn.states.forEach(([from, to]) => {
      pen.globalAlpha = 0.35;
      pen.fillStyle = colours.other;
      pen.fillRect(x(from), AXIS, Math.max(x(to) - x(from), 0.5), lanesHeight);
      pen.globalAlpha = 1;
    });
    if (drawn.blocks) drawn.blocks.forEach(drawBlock);
    else drawn.cells.forEach(drawCell);
    pen.restore();
  }

  function drawBlock([lane, from, to, project, usage, byDeadline]) {
    const left = x(from);
    const wide = Math.max(x(to) - left, 0.5);
    const high = Math.max(2, laneHeight * Math.min(1, usage));
    const top = laneTop(lane) + laneHeight - high;
    pen.fillStyle = shade(project);
    pen.fillRect(left, top, wide > 3 ? wide - 1 : wide, high);
    if (byDeadline && wide > 2) {
      pen.fillStyle = colours.error;
      pen.fillRect(left, top, wide - 1, 3);
    }
  }

  function drawCell([lane, first, last, project, part]) {
    const step = (drawn.to - drawn.from) / drawn.width;
    const left = x(drawn.from + first * step);
    const high = Math.max(1, laneHeight * part);
    pen.fillStyle = project < 0 ? colours.other : shade(project);
    pen.fillRect(left, laneTop(lane) + laneHeight - high, x(drawn.from + last * step) - left + 0.4, high);
  }

  function drawMarks() {
    const top = AXIS + lanesHeight;
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width - LEFT, height);
    pen.clip();
    drawn.rpcs.rows.forEach(([at, project]) => {
      pen.fillStyle = shade(project);
      pen.beginPath();
      pen.moveTo(x(at), top + 2);
      pen.lineTo(x(at) + 4, top + 11);
      pen.lineTo(x(at) - 4, top + 11);
      pen.fill();
    });
    pen.fillStyle = colours.error;
    drawn.misses.rows.forEach(([at]) => {
      pen.fillRect(x(at) - 0.75, AXIS, 1.5, lanesHeight + 14);
      pen.fillRect(x(at) - 0.75, AXIS, 8, 6);
    });
    pen.restore();
  }

  function drawLines(top, title, series, shadeOf) {
    const values = series.flat();
    const low = Math.min(0, ...values);
    const high = Math.max(0, ...values, low + 1e-12);
    const y = (value) => top + 16 + (1 - (value - low) / (high - low)) * (LINES - 20);
    pen.fillStyle = colours.muted;
    pen.textAlign = "left";
    pen.fillText(title, LEFT, top + 4);
    pen.fillText(short(high), 0, y(high) + 4, LEFT - 8);
    pen.fillText(short(low), 0, y(low) - 4, LEFT - 8);
    pen.strokeStyle = colours.line;
    pen.strokeRect(LEFT, top + 16, width - LEFT, LINES - 20);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, top, width - LEFT, LINES);
    pen.clip();
    series.forEach((line, number) => {
      pen.strokeStyle = shadeOf(number);
      pen.setLineDash(number % 2 ? [5, 3] : []);
      pen.lineWidth = 1.5;
      pen.beginPath();
      line.forEach((value, index) => pen.lineTo(x(drawn.levels.at[index]), y(value)));
      pen.stroke();
    });
    pen.restore();
    pen.lineWidth = 1;
  }

  function short(value) {
    const size = Math.abs(value);
    if (size >= 1e4 || (size > 0 && size < 0.01)) return value.toExponential(1);
    return Number(value.toPrecision(3)).toLocaleString(document.documentElement.lang);
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    width = canvas.clientWidth;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    if (!drawn) return;
    drawAxis();
    drawLanes();
    drawMarks();
    const top = AXIS + lanesHeight + MARKS + 8;
    const hours = drawn.levels.buffer.map((line) => line.map((secs) => secs / 3600));
    const buffer = interpolate(gettext("Work buffer (h): %(kinds)s"), { kinds: kinds.join(", ") }, true);
    drawLines(top, buffer, hours, (number) => [colours.text, colours.accent, colours.muted][number % 3]);
    const standing = width < 480 ? gettext("Project standing") : gettext("Project standing (recent credit or debt)");
    drawLines(top + LINES + 14, standing, drawn.levels.standing, shade);
    root.dataset.drawn = `${Math.round(view.from)} ${Math.round(view.to)}`;
  }

  async function fetchWindow() {
    const mine = ++asked;
    const url = `${root.dataset.url}?from=${view.from}&to=${view.to}&width=${Math.max(1, Math.round(canvas.clientWidth - LEFT))}`;
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
    words.textContent = summary().join(" · ");
  }

  function summary() {
    const { rpcs, misses } = drawn;
    const span = interpolate(gettext("%(from)s to %(to)s"), { from: time(view.from), to: time(view.to) }, true);
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
    draw();
    clearTimeout(timer);
    timer = setTimeout(fetchWindow, 80);
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

  function blockText([, from, to, project, , byDeadline, job]) {
    const facts = { job, project: projects[project], from: time(from), to: time(to) };
    if (byDeadline) {
      return interpolate(gettext("task %(job)s of %(project)s, %(from)s to %(to)s, to meet its deadline"), facts, true);
    }
    return interpolate(gettext("task %(job)s of %(project)s, %(from)s to %(to)s"), facts, true);
  }

  function cellText([, , , project, part]) {
    const facts = { project: projects[project], part: part.toLocaleString(document.documentElement.lang, { style: "percent" }) };
    if (project < 0) return interpolate(gettext("several projects, %(part)s busy"), facts, true);
    return interpolate(gettext("mostly %(project)s, %(part)s busy"), facts, true);
  }

  function tell(event) {
    if (!drawn) return;
    const box = canvas.getBoundingClientRect();
    const at = secsAt(event.clientX - box.left);
    const lane = Math.floor((event.clientY - box.top - AXIS) / (laneHeight + laneGap));
    if (lane < 0 || lane >= lanes.length || at < view.from) return;
    const block = drawn.blocks?.find(([of, from, to]) => of === lane && from <= at && at < to);
    const column = ((at - drawn.from) / (drawn.to - drawn.from)) * drawn.width;
    const cell = drawn.cells?.find(([of, first, last]) => of === lane && first <= column && column < last);
    const what = block ? blockText(block) : cell ? cellText(cell) : gettext("nothing runs");
    words.textContent = `${time(at)} · ${lanes[lane].join(" ")}: ${what}`;
  }

  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, from: view.from, to: view.to };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return tell(event);
    const by = ((drag.x - event.clientX) / (width - LEFT)) * (drag.to - drag.from);
    show(drag.from + by, drag.to + by);
  });
  ["pointerup", "pointercancel"].forEach((name) => canvas.addEventListener(name, () => (drag = null)));
  canvas.addEventListener(
    "wheel",
    (event) => {
      // Only with a key held: the page must still scroll.
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, secsAt(event.offsetX));
    },
    { passive: false },
  );
  canvas.addEventListener("dblclick", (event) => zoom(0.4, secsAt(event.offsetX)));
  canvas.addEventListener("keydown", (event) => {
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    actions[action]();
  });
  document.querySelectorAll("[data-zoom]").forEach((button) => button.addEventListener("click", actions[button.dataset.zoom]));
  const recolour = () => {
    readColours();
    draw();
  };
  new ResizeObserver(() => show(view.from, view.to)).observe(root);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  new MutationObserver(recolour).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  readColours();
})();
