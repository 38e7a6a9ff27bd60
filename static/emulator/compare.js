// Draws the comparison of variants from the numbers in the page (emulator/pages/reads.py): bars, or lines over a sweep.
(() => {
  const charts = [];
  const { token } = window.cobblestone;

  // From the least to the greatest of the seeds, a line through each point.
  function whiskers(rows, colour) {
    return {
      id: "whiskers",
      afterDatasetsDraw(chart) {
        const { ctx, scales } = chart;
        const isLying = chart.options.indexAxis === "y";
        ctx.save();
        ctx.strokeStyle = colour;
        chart.data.datasets.forEach((set, number) => {
          chart.getDatasetMeta(number).data.forEach((element, index) => {
            const [, low, high] = rows[set.rows[index]];
            if (high - low < 1e-12) return;
            const [from, to] = [low, high].map((value) => scales[isLying ? "x" : "y"].getPixelForValue(value));
            ctx.beginPath();
            ctx.moveTo(isLying ? from : element.x, isLying ? element.y : from);
            ctx.lineTo(isLying ? to : element.x, isLying ? element.y : to);
            ctx.stroke();
          });
        });
        ctx.restore();
      },
    };
  }

  // In lines of some twenty characters.
  function wrapped(name) {
    return name.split(" ").reduce((lines, word) => {
      const last = lines[lines.length - 1];
      if (last === undefined || last.length + word.length > 20) return [...lines, word];
      return [...lines.slice(0, -1), `${last} ${word}`];
    }, []);
  }

  function datasets(data, rows) {
    if (!data.values) {
      const all = rows.map((_, index) => index);
      const colours = all.map((index) => token(`--data-${index % 8}`));
      return [{ data: rows.map((row) => row[0]), rows: all, backgroundColor: colours, maxBarThickness: 24 }];
    }
    return [...new Set(data.policies)].map((policy, number) => {
      const mine = data.policies.flatMap((name, index) => (name === policy ? [index] : []));
      const shade = token(`--data-${number % 8}`);
      const points = mine.map((index) => ({ x: data.values[index], y: rows[index][0] }));
      return { label: policy, data: points, rows: mine, borderColor: shade, backgroundColor: shade, pointRadius: 4 };
    });
  }

  function options(data, name, sets) {
    const text = token("--text");
    const axis = { ticks: { color: text, maxRotation: 0 }, grid: { color: token("--line") } };
    const figure = { ...axis, beginAtZero: true, suggestedMax: 0.05, title: { display: true, text: data.names[name], color: text } };
    // The names of variants are long: beside bars that lie they are read without turning one's head.
    const scales = data.values
      ? { x: { ...axis, type: "linear", title: { display: true, text: data.axis, color: text } }, y: figure }
      : { x: figure, y: { ticks: { color: text, autoSkip: false }, grid: { display: false } } };
    return {
      animation: false,
      maintainAspectRatio: false,
      indexAxis: data.values ? "x" : "y",
      scales,
      plugins: { legend: { display: sets.length > 1, labels: { color: text, boxWidth: 12 } } },
    };
  }

  function draw() {
    charts.splice(0).forEach((chart) => chart.destroy());
    const data = JSON.parse(document.getElementById("compare-data").textContent);
    document.querySelectorAll("canvas[data-figure]").forEach((canvas) => {
      const name = canvas.dataset.figure;
      const rows = data.series[name];
      const sets = datasets(data, rows);
      const chart = new Chart(canvas, {
        type: data.values ? "line" : "bar",
        data: { labels: data.values ? undefined : data.labels.map(wrapped), datasets: sets },
        options: options(data, name, sets),
        plugins: [whiskers(rows, token("--text"))],
      });
      charts.push(chart);
    });
    document.documentElement.dataset.compared = "yes";
  }

  document.addEventListener("DOMContentLoaded", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
})();
