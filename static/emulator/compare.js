// Draws the comparison of variants from the numbers in the page (emulator/pages/reads.py): bars, or lines over a sweep.
(() => {
  const { token, wrapped, keepDrawn } = window.cobblestone;

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

  function options(data, name, sets, { text, line }) {
    const axis = { ticks: { color: text, maxRotation: 0 }, grid: { color: line } };
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

  keepDrawn("compare-data", (data, colours) => {
    const charts = [...document.querySelectorAll("canvas[data-figure]")].map((canvas) => {
      const name = canvas.dataset.figure;
      const rows = data.series[name];
      const sets = datasets(data, rows);
      return new Chart(canvas, {
        type: data.values ? "line" : "bar",
        data: { labels: data.values ? undefined : data.labels.map((label) => wrapped(label, 20)), datasets: sets },
        options: options(data, name, sets, colours),
        plugins: [whiskers(rows, colours.text)],
      });
    });
    document.documentElement.dataset.compared = "yes";
    return charts;
  });
})();
