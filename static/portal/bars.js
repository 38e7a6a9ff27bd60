// Draws the bar charts of a page from the numbers in it (#bars-data); needs Chart.js, site.js and charts.js.
// A chart: id of its canvas, x (what the bars are), y (the unit), labels, series of {name, values, worst, low, colour}, lies
// (bars lie, where names are long), stacked (the series are parts of one bar), bounds: a number or null for each label,
// places: numbers on the axis, where each series is a line, and least_top: where the axis ends at the least.
// A series may be hatched, have a colour for each bar (by_bar), and name a token instead of a data colour.
(() => {
  const { token, number, wrapped, stripes, tooltipLook, axisLook, readByKeyboard, keepDrawn } = window.cobblestone;

  // A thin line from each bar's mean, or from the lowest, to the worst of what it is the mean of, and a broken one for the
  // bound.
  const lines = (data, colour) => ({
    id: "lines",
    afterDatasetsDraw(chart) {
      const { ctx, scales } = chart;
      const amounts = data.lies ? scales.y : scales.x;
      const values = data.lies ? scales.x : scales.y;
      function draw(places, amountsAt, dash) {
        const points = places.map((at, end) => (data.lies ? [amountsAt[end], at] : [at, amountsAt[end]]));
        ctx.setLineDash(dash);
        ctx.beginPath();
        ctx.moveTo(...points[0]);
        ctx.lineTo(...points[1]);
        ctx.stroke();
      }
      ctx.save();
      ctx.strokeStyle = colour;
      data.series.forEach((series, layer) => {
        chart.getDatasetMeta(layer).data.forEach((bar, place) => {
          const worst = series.worst?.[place] ?? null;
          if (worst === null) return;
          const at = data.lies ? bar.y : bar.x;
          draw([at, at], [series.low?.[place] ?? series.values[place], worst].map((value) => values.getPixelForValue(value)), []);
        });
      });
      const half = Math.abs(amounts.getPixelForValue(1) - amounts.getPixelForValue(0)) / 2 || 20;
      (data.bounds ?? []).forEach((bound, place) => {
        if (bound === null) return;
        const at = values.getPixelForValue(bound);
        const middle = amounts.getPixelForValue(place);
        draw([middle - half, middle + half], [at, at], [5, 4]);
      });
      ctx.restore();
    },
  });

  function inWords(data, series, place) {
    const value = series.values[place];
    const facts = { series: series.name, value: value === null ? "" : number(value) };
    if (value === null) return interpolate(gettext("%(series)s: not measured"), facts, true);
    const worst = series.worst?.[place] ?? value;
    if (worst === value) return `${facts.series}: ${facts.value}`;
    return interpolate(gettext("%(series)s: %(value)s, worst %(worst)s"), { ...facts, worst: number(worst) }, true);
  }

  function describe(data, place) {
    const bound = data.bounds?.[place] ?? null;
    const parts = data.series.map((series) => inWords(data, series, place));
    const limit = bound === null ? [] : [interpolate(gettext("limit %(bound)s"), { bound: number(bound) }, true)];
    return [data.labels[place], ...parts, ...limit].join("; ");
  }

  function options(data, colours, width) {
    const look = axisLook(colours, data.x, wrapped(data.y, width * 2));
    const shown = [...data.series.flatMap((series) => [...series.values, ...(series.worst ?? [])]), ...(data.bounds ?? [])];
    const known = shown.filter((value) => value !== null);
    const names = { ...look.x, ticks: { ...look.x.ticks, autoSkip: !data.lies } };
    if (data.places) names.type = "linear";
    const most = Math.max(...known, data.least_top ?? -Infinity);
    const amounts = { ...look.y, suggestedMin: Math.min(...known), suggestedMax: most };
    if (data.stacked) names.stacked = amounts.stacked = true;
    return {
      indexAxis: data.lies ? "y" : "x",
      maintainAspectRatio: false,
      animation: false,
      interaction: { mode: "index", axis: data.lies ? "y" : "x", intersect: false },
      plugins: {
        legend: {
          display: data.series.length > 1 && !data.has_legend, align: "start",
          labels: { color: colours.text, boxWidth: 12 },
        },
        tooltip: {
          ...tooltipLook(colours),
          callbacks: {
            title: ([item]) => (item ? data.labels[item.dataIndex] : ""),
            label: (item) => ` ${inWords(data, data.series[item.datasetIndex], item.dataIndex)}`,
          },
        },
      },
      scales: data.lies ? { x: amounts, y: names } : { x: names, y: amounts },
    };
  }

  function fill(canvas, colours, series, place) {
    const colour = token(series.token ?? `--data-${series.colour ?? place}`);
    return series.hatched ? stripes(canvas, colour, colours.surface) : colour;
  }

  function drawOne(data, colours) {
    const canvas = document.getElementById(data.id);
    const width = canvas.parentElement.clientWidth < 600 ? 18 : 40;
    const labels = data.lies ? data.labels.map((name) => wrapped(name, width)) : data.labels;
    if (data.lies) {
      // Each bar has room, and each line of a name.
      const rows = Math.max(1.5 + 0.75 * data.series.length, ...labels.map((name) => 0.5 + name.length));
      canvas.parentElement.style.height = `${6 + labels.length * rows}rem`;
    }
    const chart = new Chart(canvas, {
      type: data.places ? "line" : "bar",
      data: {
        labels: data.places ? undefined : labels,
        datasets: data.series.map((series, place) => {
          const shade = series.by_bar
            ? labels.map((_, bar) => token(`--data-${bar % 8}`)) : fill(canvas, colours, series, place % 8);
          return {
            label: series.name,
            data: data.places ? series.values.map((y, at) => ({ x: data.places[at], y })) : series.values,
            backgroundColor: shade,
            hoverBackgroundColor: shade,
            ...(data.places ? { borderColor: shade, pointRadius: 4, spanGaps: true } : { maxBarThickness: 40 }),
          };
        }),
      },
      options: options(data, colours, width),
      plugins: [lines(data, colours.text)],
    });
    canvas.setAttribute("role", "slider");
    canvas.setAttribute("aria-orientation", "horizontal");
    canvas.setAttribute("aria-valuemin", "1");
    readByKeyboard(chart, data.labels.length, (place) => describe(data, place));
    return chart;
  }

  keepDrawn("bars-data", (charts, colours) => charts.map((data) => drawOne(data, colours)));
})();
