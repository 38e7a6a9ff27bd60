// Draws the charts of a preview from the numbers in the page (credit/previews/reads.py); needs Chart.js.
(() => {
  // As the site's own data colours, in light and dark.
  const COLOURS = { light: ["#8a8680", "#226f67"], dark: ["#9a968f", "#5af5ca"] };
  let charts = [];

  function number(value) {
    const size = Math.abs(value);
    const digits = size >= 99.95 || size === 0 ? 0 : size >= 9.995 ? 1 : 2;
    return value.toLocaleString("en", { maximumFractionDigits: digits }).replaceAll(",", "\u202f");
  }

  function options(data, text, line) {
    const title = (words) => ({ display: true, text: words, color: text });
    const names = { title: title(data.x), ticks: { color: text, autoSkip: !data.lies, autoSkipPadding: 12 }, grid: { display: false } };
    const amounts = { title: title(data.y), beginAtZero: true, ticks: { color: text, maxTicksLimit: 6, callback: number }, grid: { color: line }, border: { display: false } };
    return {
      indexAxis: data.lies ? "y" : "x",
      responsive: true,
      maintainAspectRatio: false,
      animation: false,
      interaction: { mode: "index", axis: data.lies ? "y" : "x", intersect: false },
      plugins: {
        legend: { display: data.series.length > 1, align: "start", labels: { color: text, boxWidth: 12 } },
        tooltip: { callbacks: { title: ([item]) => data.labels[item.dataIndex], label: (item) => ` ${item.dataset.label}: ${number(item.raw)}` } },
      },
      scales: data.lies ? { x: amounts, y: names } : { x: names, y: amounts },
    };
  }

  // The arrow keys go from bar to bar; what is there is shown and said.
  function readByKeyboard(canvas, chart, data) {
    let place = -1;
    canvas.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      place = Math.min(data.labels.length - 1, Math.max(0, place + step));
      const active = data.series.map((_, datasetIndex) => ({ datasetIndex, index: place }));
      chart.setActiveElements(active);
      chart.tooltip.setActiveElements(active, { x: 0, y: 0 });
      chart.update();
      const values = data.series.map((series) => `${series.name} ${number(series.values[place])}`);
      canvas.setAttribute("aria-label", `${data.labels[place]}: ${values.join(", ")}`);
    };
  }

  function draw() {
    for (const chart of charts) chart.destroy();
    charts = [];
    const source = document.getElementById("preview-charts");
    if (!source) return;
    const isDark = document.documentElement.classList.contains("dark");
    const colours = COLOURS[isDark ? "dark" : "light"];
    for (const data of JSON.parse(source.textContent)) {
      const canvas = document.getElementById(data.id);
      // Long names lie beside their bars; each pair has room.
      if (data.lies) canvas.parentElement.style.height = `${6 + 3 * data.labels.length}rem`;
      const datasets = data.series.map((series, place) => ({
        label: series.name,
        data: series.values,
        backgroundColor: colours[data.series.length > 1 ? place : 1],
        maxBarThickness: 40,
      }));
      const chart = new Chart(canvas, {
        type: "bar",
        // Long names in lines: on a phone they would be cut.
        data: { labels: data.lies ? data.labels.map((name) => name.split(/(?<=,) /)) : data.labels, datasets },
        options: options(data, isDark ? "#bdb9b2" : "#57534e", isDark ? "#3b3835" : "#e7e5e4"),
      });
      readByKeyboard(canvas, chart, data);
      charts.push(chart);
    }
  }

  document.addEventListener("htmx:afterSettle", draw);
  // unfold's own switch between light and dark
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["class"] });
  draw();
})();
