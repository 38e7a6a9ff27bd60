// Draws the history chart from the numbers in the page (accounting/history/charts.py), and lets the keyboard read them.
(() => {
  const MAX_OUTLINED_BARS = 100;
  let chart = null;

  const { token } = window.cobblestone;
  const colourOf = (element) => getComputedStyle(element).color;

  // Three digits, thin spaces between thousands: as the numbers in the table.
  function number(value) {
    const size = Math.abs(value);
    if (size === 0) return "0";
    const digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    return value.toLocaleString("en", { maximumFractionDigits: digits }).replaceAll(",", "\u202f");
  }

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
      backgroundColor: colours.text,
      titleColor: colours.surface,
      bodyColor: colours.surface,
      footerColor: colours.surface,
      footerFont: { weight: "normal" },
      cornerRadius: 4,
      padding: 10,
      boxPadding: 4,
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
    const ticks = { color: colours.muted, maxRotation: 0, autoSkipPadding: 16 };
    return {
      x: {
        stacked: true,
        grid: { display: false },
        border: { color: colours.strong },
        ticks,
        title: { display: true, text: `${data.per} (UTC)`, color: colours.muted },
      },
      y: {
        stacked: true,
        beginAtZero: true,
        grace: "4%",
        grid: { color: colours.line },
        border: { display: false },
        ticks: { ...ticks, maxTicksLimit: 6, callback: number, ...(data.unit === "jobs" ? { precision: 0 } : {}) },
        title: { display: true, text: `${data.unit} per ${data.per}`, color: colours.muted },
      },
    };
  }

  function describe(data, bar) {
    const parts = data.series
      .filter((layer) => layer.values[bar] > 0)
      .map((layer) => `${layer.name} ${number(layer.values[bar])}`);
    return [`${data.titles[bar]}: ${number(data.totals[bar])} ${data.unit}`, ...parts, ...data.notes[bar]].join("; ");
  }

  function point(canvas, data, bar) {
    const active = bar === null ? [] : data.series.map((_, datasetIndex) => ({ datasetIndex, index: bar }));
    const place = bar === null ? { x: 0, y: 0 } : { x: chart.scales.x.getPixelForValue(bar), y: chart.chartArea.top };
    chart.setActiveElements(active);
    chart.tooltip.setActiveElements(active, place);
    chart.update();
    if (bar === null) return;
    canvas.setAttribute("aria-valuenow", bar + 1);
    canvas.setAttribute("aria-valuetext", describe(data, bar));
  }

  function readByKeyboard(canvas, data) {
    const last = data.labels.length - 1;
    let bar = last;
    const moves = {
      ArrowLeft: () => bar - 1, ArrowDown: () => bar - 1, ArrowRight: () => bar + 1, ArrowUp: () => bar + 1,
      PageUp: () => bar - 7, PageDown: () => bar + 7, Home: () => 0, End: () => last,
    };
    canvas.setAttribute("aria-valuetext", describe(data, bar));
    canvas.onkeydown = (event) => {
      if (event.key === "Enter") return location.assign(data.addresses[bar]);
      const move = moves[event.key];
      if (!move || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      bar = Math.min(last, Math.max(0, move()));
      point(canvas, data, bar);
    };
    canvas.onfocus = () => { if (canvas.matches(":focus-visible")) point(canvas, data, bar); };
    canvas.onblur = () => point(canvas, data, null);
  }

  function draw() {
    chart?.destroy();
    chart = null;
    const canvas = document.getElementById("history-chart");
    if (!canvas) return;
    const data = JSON.parse(document.getElementById("history-data").textContent);
    const colours = {
      text: token("--text"), muted: token("--text-muted"), line: token("--line"), strong: token("--line-strong"),
      surface: token("--surface"), warn: token("--warn"),
    };
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
    readByKeyboard(canvas, data);
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
