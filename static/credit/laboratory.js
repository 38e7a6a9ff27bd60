// Draws the charts of the credit laboratory from the numbers in the page (credit/experiments/reads.py); needs Chart.js.
(() => {
  let charts = [];

  function number(value) {
    const size = Math.abs(value);
    const digits = size >= 99.95 || size === 0 ? 0 : size >= 9.995 ? 1 : 2;
    return value.toLocaleString("en", { maximumFractionDigits: digits }).replaceAll(",", "\u202f");
  }

  // A thin line from each bar's mean to the worst of the populations, and a broken line for the bound.
  const lines = (data, text) => ({
    id: "lines",
    afterDatasetsDraw(chart) {
      const { ctx, scales: { y } } = chart;
      ctx.save();
      ctx.strokeStyle = text;
      chart.getDatasetMeta(0).data.forEach((bar, place) => {
        const draw = (from, to, left, right, dash) => {
          ctx.setLineDash(dash);
          ctx.beginPath();
          ctx.moveTo(left, y.getPixelForValue(from));
          ctx.lineTo(right, y.getPixelForValue(to));
          ctx.stroke();
        };
        if (data.worst[place] !== null) draw(data.means[place], data.worst[place], bar.x, bar.x, []);
        const half = bar.width / 2 + 8;
        if (data.bounds[place] !== null) draw(data.bounds[place], data.bounds[place], bar.x - half, bar.x + half, [5, 4]);
      });
      ctx.restore();
    },
  });

  function describe(data, place) {
    const bound = data.bounds[place] === null ? "" : `; bound ${number(data.bounds[place])}`;
    if (data.means[place] === null) return "not measured";
    return `mean ${number(data.means[place])}, worst ${number(data.worst[place])} ${data.unit}${bound}`;
  }

  function options(data, text, line) {
    const title = (words) => ({ display: true, text: words, color: text });
    const shown = [...data.means, ...data.worst, ...data.bounds].filter((value) => value !== null);
    return {
      maintainAspectRatio: false,
      animation: false,
      plugins: {
        legend: { display: false },
        tooltip: {
          callbacks: {
            title: ([item]) => (item ? data.labels[item.dataIndex] : ""),
            label: (item) => ` ${describe(data, item.dataIndex)}`,
          },
        },
      },
      scales: {
        x: { title: title("number in the legend"), ticks: { color: text }, grid: { display: false } },
        y: {
          title: title(data.unit), beginAtZero: true, suggestedMin: Math.min(...shown), suggestedMax: Math.max(...shown),
          ticks: { color: text, maxTicksLimit: 6, callback: number }, grid: { color: line },
        },
      },
    };
  }

  // The arrow keys go from bar to bar; what is there is shown and said.
  function readByKeyboard(canvas, chart, data) {
    const name = canvas.getAttribute("aria-label");
    let place = -1;
    canvas.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      place = Math.min(data.labels.length - 1, Math.max(0, place + step));
      const active = [{ datasetIndex: 0, index: place }];
      chart.setActiveElements(active);
      chart.tooltip.setActiveElements(active, { x: 0, y: 0 });
      chart.update();
      canvas.setAttribute("aria-label", `${name} ${data.labels[place]}: ${describe(data, place)}`);
    };
  }

  function draw() {
    for (const chart of charts) chart.destroy();
    charts = [];
    const source = document.getElementById("lab-data");
    if (!source) return;
    const room = getComputedStyle(document.querySelector(".lab"));
    Chart.defaults.font.family = room.fontFamily;
    const colours = [...document.querySelectorAll("[data-variant]")].map((swatch) => getComputedStyle(swatch).color);
    for (const data of JSON.parse(source.textContent)) {
      const canvas = document.getElementById(data.id);
      const sets = [{ data: data.means, backgroundColor: data.means.map((_, bar) => colours[bar % colours.length]), maxBarThickness: 40 }];
      const chart = new Chart(canvas, {
        type: "bar",
        data: { labels: data.labels.map((_, bar) => bar + 1), datasets: sets },
        options: options(data, room.color, "rgba(128, 128, 128, 0.3)"),
        plugins: [lines(data, room.color)],
      });
      readByKeyboard(canvas, chart, data);
      charts.push(chart);
    }
  }

  document.addEventListener("htmx:afterSettle", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // The switches between light and dark: the admin's sets a class, the site's an attribute.
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["class", "data-theme"] });
  draw();
})();
