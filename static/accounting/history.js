// Draws the history chart from the numbers in the page (accounting/history/charts.py), and lets the keyboard read them.
(() => {
  const MAX_OUTLINED_BARS = 100;

  const { number, stripes, tooltipLook, axisLook, readByKeyboard, keepDrawn } = window.cobblestone;
  const colourOf = (element) => getComputedStyle(element).color;

  // By square root, values are drawn as roots, and ticks and words have the values. No logarithm has a place for zero.
  const DRAWN = { root: Math.sqrt, log: (value) => (value > 0 ? value : null) };
  const drawn = (data, value) => (DRAWN[data.scale] ?? ((same) => same))(value);
  const isApart = (data) => data.scale !== "linear";
  const isLines = (data) => data.running || isApart(data);
  const swatchColour = (place) => colourOf(document.querySelector(`[data-layer="${place}"]`));

  function bars(data, layer, colour, canvas, surface) {
    const partial = new Set(data.partial);
    const pattern = partial.size ? stripes(canvas, colour, surface) : null;
    const fills = layer.values.map((_, bar) => (partial.has(bar) ? pattern : colour));
    return {
      backgroundColor: fills,
      hoverBackgroundColor: fills,
      borderColor: surface,
      borderWidth: data.labels.length <= MAX_OUTLINED_BARS ? { top: 1 } : 0,
      borderSkipped: false,
      maxBarThickness: 56,
      categoryPercentage: 0.86,
      barPercentage: 1,
      stack: "layers",
    };
  }

  // Running totals lie on one another; where the scale is not linear each line is by itself.
  const area = (data, colour) => ({
    type: "line",
    borderColor: colour,
    backgroundColor: colour,
    borderWidth: 2,
    pointRadius: data.labels.length === 1 ? 3 : data.scale === "log" ? 2 : 0,
    fill: isApart(data) ? false : "stack",
    stack: isApart(data) ? undefined : "layers",
  });

  function datasets(data, canvas, colours) {
    const layers = data.series.map((layer, place) => {
      const colour = swatchColour(place);
      const look = isLines(data) ? area(data, colour) : bars(data, layer, colour, canvas, colours.surface);
      return { label: layer.name, data: layer.values.map((value) => drawn(data, value)), hidden: off.has(layer.name), ...look };
    });
    const lines = data.lines.map((line) => ({
      type: "line",
      label: line.name,
      data: line.values.map((value) => drawn(data, value)),
      borderColor: colours.text,
      backgroundColor: colours.text,
      borderDash: line.dashed ? [5, 4] : [],
      borderWidth: 2,
      pointRadius: data.labels.length > 1 ? 0 : 3,
      stack: line.name,
      order: -1,
    }));
    return [...layers, ...lines];
  }

  // The legend switches series; without scripts it is a list.
  const off = new Set();
  function switches(data) {
    for (const item of document.querySelectorAll(".legend li")) {
      const layer = data.series[item.querySelector("[data-layer]")?.dataset.layer];
      if (!layer || item.querySelector("button")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "legend__switch";
      button.title = data.switch;
      button.append(...item.childNodes);
      button.setAttribute("aria-pressed", String(!off.has(layer.name)));
      button.addEventListener("click", () => {
        if (!off.delete(layer.name)) off.add(layer.name);
        button.setAttribute("aria-pressed", String(!off.has(layer.name)));
        draw();
      });
      item.append(button);
    }
  }

  const shownLayers = (data) => data.series.filter((layer) => !off.has(layer.name));
  const total = (data, bar) => (shownLayers(data).length === data.series.length
    ? data.totals[bar] : shownLayers(data).reduce((sum, layer) => sum + layer.values[bar], 0));
  const valueOf = (data, item) => (data.series[item.datasetIndex] ?? data.lines[item.datasetIndex - data.series.length]).values[item.dataIndex];

  // A small triangle above each bar whose days have a note.
  const marks = (data, colour) => ({
    id: "marks",
    afterDatasetsDraw({ ctx, scales: { x, y }, chartArea }) {
      ctx.save();
      ctx.fillStyle = colour;
      for (const bar of data.marked) {
        const centre = x.getPixelForValue(bar);
        const height = isApart(data) ? Math.max(0, ...shownLayers(data).map((layer) => layer.values[bar])) : total(data, bar);
        const place = drawn(data, height);
        const top = place === null ? chartArea.bottom : y.getPixelForValue(place);
        const foot = Math.max(top - 4, chartArea.top + 8);
        ctx.beginPath();
        ctx.moveTo(centre - 4, foot);
        ctx.lineTo(centre + 4, foot);
        ctx.lineTo(centre, foot - 7);
        ctx.fill();
      }
      ctx.restore();
    },
  });

  function tooltip(data, colours) {
    return {
      ...tooltipLook(colours),
      itemSort: (a, b) => b.datasetIndex - a.datasetIndex,
      filter: (item) => item.raw > 0,
      callbacks: {
        title: ([item]) => (item ? `${data.titles[item.dataIndex]}: ${number(total(data, item.dataIndex))} ${data.unit}` : ""),
        label: (item) => ` ${item.dataset.label} ${number(valueOf(data, item))}`,
        labelColor: (item) => ({
          backgroundColor: item.datasetIndex < data.series.length ? swatchColour(item.datasetIndex) : colours.surface,
          borderColor: colours.surface,
        }),
        footer: ([item]) => (item ? data.notes[item.dataIndex] : []),
      },
    };
  }

  // Ticks at the squares of even steps, up to a round number above the largest.
  function rootTicks(data) {
    const largest = Math.max(...[...shownLayers(data), ...data.lines].flatMap((layer) => layer.values), 0) || 1;
    const power = 10 ** Math.floor(Math.log10(largest));
    const top = [1, 2.5, 5, 10].map((factor) => factor * power).find((round) => round >= largest);
    return [0, 1, 4, 9, 16, 25].map((part) => ({ value: Math.sqrt((top * part) / 25) }));
  }

  const isPowerOfTen = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;

  function scales(data, colours) {
    const look = axisLook(colours, data.x, data.y);
    if (data.is_count && !isApart(data)) look.y.ticks.precision = 0;
    const y = { ...look.y, stacked: !isApart(data), grace: "4%" };
    if (data.scale === "log") {
      y.type = "logarithmic";
      y.beginAtZero = false;
      y.ticks = { ...look.y.ticks, maxTicksLimit: undefined, callback: (value) => (isPowerOfTen(value) ? number(value) : "") };
    }
    if (data.scale === "root") {
      const ticks = rootTicks(data);
      y.grace = 0;
      y.max = ticks[ticks.length - 1].value;
      y.afterBuildTicks = (axis) => { axis.ticks = ticks; };
      y.ticks = { ...look.y.ticks, callback: (value) => number(value * value) };
    }
    return { x: { ...look.x, stacked: true, offset: true }, y };
  }

  function describe(data, bar) {
    const parts = [...shownLayers(data), ...data.lines]
      .filter((layer) => layer.values[bar] > 0)
      .map((layer) => `${layer.name} ${number(layer.values[bar])}`);
    return [`${data.titles[bar]}: ${number(total(data, bar))} ${data.unit}`, ...parts, ...data.notes[bar]].join("; ");
  }

  function make(data, colours) {
    const canvas = document.getElementById("history-chart");
    switches(data);
    const chart = new Chart(canvas, {
      type: "bar",
      data: { labels: data.labels, datasets: datasets(data, canvas, colours) },
      options: {
        animation: false,
        maintainAspectRatio: false,
        interaction: { mode: "index", intersect: false },
        onClick: (_, bars) => { if (bars.length) location.assign(data.addresses[bars[0].index]); },
        onHover: (event, bars) => { event.native.target.style.cursor = bars.length ? "pointer" : ""; },
        layout: { padding: { top: 8 } },
        plugins: { legend: { display: false }, tooltip: tooltip(data, colours) },
        scales: scales(data, colours),
      },
      plugins: [marks(data, colours.warn)],
    });
    readByKeyboard(chart, data.labels.length, (bar) => describe(data, bar), (bar) => location.assign(data.addresses[bar]));
    return chart;
  }

  // The tables are open for readers without scripts; with the chart above, each is folded, or as the visitor left it.
  // One that the address names is what the visitor came for.
  const FOLDED = ["history-groups", "history-numbers"];
  const isOpen = Object.fromEntries(FOLDED.map((id) => [id, location.hash === `#${id}`]));
  function fold() {
    for (const id of FOLDED) {
      const table = document.getElementById(id);
      if (table) table.open = isOpen[id];
    }
  }
  document.addEventListener("htmx:beforeSwap", () => {
    for (const id of FOLDED) isOpen[id] = document.getElementById(id)?.open ?? isOpen[id];
  });
  // Not after more rows of a table, which change nothing above it.
  document.addEventListener("htmx:afterSettle", (event) => { if (event.target.id === "history") fold(); });

  fold();
  const draw = keepDrawn("history-data", make, ["history"]);
})();
