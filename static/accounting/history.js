// Draws the history chart from the numbers in the page (accounting/history/charts.py), and lets the keyboard read them.
(() => {
  const MAX_OUTLINED_BARS = 100;
  let chart = null;

  const { number, tooltipLook, axisLook, readByKeyboard } = window.cobblestone;
  const colourOf = (element) => getComputedStyle(element).color;

  function hatched(context, colour, ground) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const pen = tile.getContext("2d");
    pen.fillStyle = ground;
    pen.fillRect(0, 0, 6, 6);
    pen.strokeStyle = colour;
    pen.lineWidth = 2.2;
    pen.beginPath();
    for (const shift of [-6, 0, 6]) {
      pen.moveTo(shift - 1, 7);
      pen.lineTo(shift + 7, -1);
    }
    pen.stroke();
    return context.createPattern(tile, "repeat");
  }

  function datasets(data, context, surface) {
    const partial = new Set(data.partial);
    return data.series.map((layer, place) => {
      const colour = colourOf(document.querySelector(`[data-layer="${place}"]`));
      const pattern = partial.size ? hatched(context, colour, surface) : null;
      const fills = layer.values.map((_, bar) => (partial.has(bar) ? pattern : colour));
      return {
        label: layer.name,
        data: layer.values,
        backgroundColor: fills,
        hoverBackgroundColor: fills,
        borderColor: surface,
        borderWidth: data.labels.length <= MAX_OUTLINED_BARS ? { top: 1 } : 0,
        borderSkipped: false,
        maxBarThickness: 56,
        categoryPercentage: 0.86,
        barPercentage: 1,
      };
    });
  }

  // A small triangle above each bar whose days have a note.
  const marks = (data, colour) => ({
    id: "marks",
    afterDatasetsDraw({ ctx, scales: { x, y }, chartArea }) {
      ctx.save();
      ctx.fillStyle = colour;
      for (const bar of data.marked) {
        const centre = x.getPixelForValue(bar);
        const foot = Math.max(y.getPixelForValue(data.totals[bar]) - 4, chartArea.top + 8);
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
        title: ([item]) => (item ? `${data.titles[item.dataIndex]}: ${number(data.totals[item.dataIndex])} ${data.unit}` : ""),
        label: (item) => ` ${item.dataset.label} ${number(item.raw)}`,
        labelColor: (item) => ({
          backgroundColor: colourOf(document.querySelector(`[data-layer="${item.datasetIndex}"]`)),
          borderColor: colours.surface,
        }),
        footer: ([item]) => (item ? data.notes[item.dataIndex] : []),
      },
    };
  }

  function scales(data, colours) {
    const look = axisLook(colours, `${data.per} (UTC)`, `${data.unit} per ${data.per}`);
    if (data.unit === "jobs") look.y.ticks.precision = 0;
    return { x: { ...look.x, stacked: true }, y: { ...look.y, stacked: true, grace: "4%" } };
  }

  function describe(data, bar) {
    const parts = data.series
      .filter((layer) => layer.values[bar] > 0)
      .map((layer) => `${layer.name} ${number(layer.values[bar])}`);
    return [`${data.titles[bar]}: ${number(data.totals[bar])} ${data.unit}`, ...parts, ...data.notes[bar]].join("; ");
  }

  function draw() {
    chart?.destroy();
    chart = null;
    const canvas = document.getElementById("history-chart");
    if (!canvas) return;
    const data = JSON.parse(document.getElementById("history-data").textContent);
    const colours = window.cobblestone.chartColours();
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    Chart.defaults.font.size = 12;
    chart = new Chart(canvas, {
      type: "bar",
      data: { labels: data.labels, datasets: datasets(data, canvas.getContext("2d"), colours.surface) },
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
  document.addEventListener("htmx:afterSettle", (event) => {
    // Not after more rows of a table, which change nothing above it.
    if (event.target.id !== "history") return;
    fold();
    draw();
  });
  document.addEventListener("themechange", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  fold();
  draw();
})();
