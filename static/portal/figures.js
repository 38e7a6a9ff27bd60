// Draws a figure's long chart from the numbers in the page (portal/dashboard/charts.py).
(() => {
  const { number, tooltipLook, axisLook, readByKeyboard, verticalMarks, keepDrawn } = window.cobblestone;
  const DAY = 86_400_000;

  const colourOf = (layer) => getComputedStyle(document.querySelector(`[data-layer="${layer}"]`)).color;
  const exact = (at) => new Date(at).toISOString().slice(0, 16).replace("T", " ");

  function tick(at, span) {
    const text = new Date(at).toISOString();
    return span > 3 * DAY ? text.slice(5, 10) : text.slice(11, 16);
  }

  function draw(data, colours) {
    const span = data.until - data.since;
    // All lines have all times, so that the keyboard reads them together.
    const times = [...new Set(data.series.flatMap((line) => line.points.map(([at]) => at)))].sort((a, b) => a - b);
    const values = data.series.map((line) => new Map(line.points));
    const look = axisLook(colours, gettext("Time (UTC)"), data.unit);
    const chart = new Chart(document.getElementById("figure-chart"), {
      type: "line",
      data: {
        datasets: data.series.map((line, layer) => ({
          label: line.name,
          data: times.map((at) => ({ x: at, y: values[layer].get(at) ?? null })),
          borderColor: colourOf(layer),
          backgroundColor: colourOf(layer),
          borderWidth: 2,
          borderDash: layer % 2 ? [6, 3] : [],
          pointRadius: times.length < 30 ? 2 : 0,
          pointHoverRadius: 4,
          spanGaps: true,
        })),
      },
      options: {
        animation: false,
        parsing: false,
        maintainAspectRatio: false,
        interaction: { mode: "index", intersect: false },
        plugins: {
          legend: { display: false },
          tooltip: {
            ...tooltipLook(colours),
            filter: (item) => item.parsed.y !== null,
            callbacks: {
              title: ([item]) => (item ? `${exact(item.parsed.x)} UTC` : ""),
              label: (item) => ` ${item.dataset.label} ${number(item.parsed.y)}`,
            },
          },
        },
        scales: {
          x: {
            ...look.x, type: "linear", min: data.since, max: data.until,
            ticks: { ...look.x.ticks, maxTicksLimit: 8, callback: (at) => tick(at, span) },
          },
          y: look.y,
        },
      },
      plugins: [verticalMarks(data.markers, colours)],
    });
    readByKeyboard(chart, times.length, (place) => [
      `${exact(times[place])} UTC`,
      ...data.series.flatMap((line, layer) => {
        const value = values[layer].get(times[place]);
        return value === undefined ? [] : [`${line.name} ${number(value)}`];
      }),
      ...data.markers.filter((mark) => mark.at <= times[place] && mark.at > (times[place - 1] ?? -Infinity)).map((mark) => mark.label),
    ].join("; "));
    return chart;
  }

  keepDrawn("figure-data", draw);
})();
