// What all charts share: when they are drawn, how numbers, axes and tooltips look, and how the keyboard reads values. Needs
// Chart.js and site.js.
(() => {
  const { token, localNumber } = window.cobblestone;

  // Three digits, thin spaces between thousands: as the numbers in the table.
  function number(value) {
    const size = Math.abs(value);
    if (size === 0) return "0";
    return localNumber(value, { maximumFractionDigits: size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3 });
  }

  // Long names in lines: on a phone they would be cut.
  function wrapped(name, width) {
    return name.split(" ").reduce((lines, word) => {
      const last = lines[lines.length - 1];
      if (last === undefined || last.length + word.length > width) return [...lines, word];
      return [...lines.slice(0, -1), `${last} ${word}`];
    }, []);
  }

  // Stripes in a colour, for what is not sure.
  function stripes(canvas, colour, ground) {
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
    return canvas.getContext("2d").createPattern(tile, "repeat");
  }

  const chartColours = () => ({
    text: token("--text"), muted: token("--text-muted"), line: token("--line"), strong: token("--line-strong"),
    surface: token("--surface"), warn: token("--warn"),
  });

  const tooltipLook = (colours) => ({
    backgroundColor: colours.text,
    titleColor: colours.surface,
    bodyColor: colours.surface,
    footerColor: colours.surface,
    footerFont: { weight: "normal" },
    cornerRadius: 4,
    padding: 10,
    boxPadding: 4,
  });

  function axisLook(colours, x, y) {
    const ticks = { color: colours.muted, maxRotation: 0, autoSkipPadding: 16 };
    return {
      x: {
        grid: { display: false },
        border: { color: colours.strong },
        ticks: { ...ticks },
        title: { display: true, text: x, color: colours.muted },
      },
      y: {
        beginAtZero: true,
        grid: { color: colours.line },
        border: { display: false },
        ticks: { ...ticks, maxTicksLimit: 6, callback: number },
        title: { display: true, text: y, color: colours.muted },
      },
    };
  }

  function point(chart, place) {
    const active = place === null ? [] : chart.data.datasets.map((_, datasetIndex) => ({ datasetIndex, index: place }));
    const at = place === null ? 0 : chart.getDatasetMeta(0).data[place]?.x ?? 0;
    chart.setActiveElements(active);
    chart.tooltip.setActiveElements(active, { x: at, y: chart.chartArea.top });
    chart.update();
  }

  // Arrow keys go through the places of a chart. ``describe`` says what is at one, ``open`` goes to what is behind it.
  function readByKeyboard(chart, count, describe, open) {
    const canvas = chart.canvas;
    const last = count - 1;
    let place = last;
    const moves = {
      ArrowLeft: () => place - 1, ArrowDown: () => place - 1, ArrowRight: () => place + 1, ArrowUp: () => place + 1,
      PageUp: () => place - 7, PageDown: () => place + 7, Home: () => 0, End: () => last,
    };
    function show() {
      point(chart, place);
      canvas.setAttribute("aria-valuenow", place + 1);
      canvas.setAttribute("aria-valuetext", describe(place));
    }
    canvas.setAttribute("aria-valuemax", count);
    canvas.setAttribute("aria-valuenow", count);
    canvas.setAttribute("aria-valuetext", describe(place));
    canvas.onkeydown = (event) => {
      if (event.key === "Enter" && open) return open(place);
      const move = moves[event.key];
      if (!move || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      place = Math.min(last, Math.max(0, move()));
      show();
    };
    canvas.onfocus = () => { if (canvas.matches(":focus-visible")) show(); };
    canvas.onblur = () => point(chart, null);
  }

  // Vertical lines with a label at the time of each of ``markers`` ({at, label}), on a chart with a linear x axis.
  const verticalMarks = (markers, colours) => ({
    id: "vertical-marks",
    afterDatasetsDraw({ ctx, scales: { x }, chartArea }) {
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colours.warn;
      ctx.setLineDash([4, 3]);
      ctx.font = `12px ${Chart.defaults.font.family}`;
      for (const [place, mark] of markers.entries()) {
        const at = x.getPixelForValue(mark.at);
        if (at < chartArea.left || at > chartArea.right) continue;
        ctx.beginPath();
        ctx.moveTo(at, chartArea.top);
        ctx.lineTo(at, chartArea.bottom);
        ctx.stroke();
        const isRight = at > (chartArea.left + chartArea.right) / 2;
        ctx.textAlign = isRight ? "right" : "left";
        ctx.fillText(mark.label, at + (isRight ? -4 : 4), chartArea.top + 12 + (place % 3) * 14);
      }
      ctx.restore();
    },
  });

  // Draws what ``make`` makes of the numbers in the element ``id``, a chart or several; and again when the theme changes or
  // htmx brings a part of the page, of ``parts`` only if they are given.
  function keepDrawn(id, make, parts) {
    let charts = [];
    function draw() {
      for (const chart of charts) chart.destroy();
      charts = [];
      const source = document.getElementById(id);
      if (!source) return;
      Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
      Chart.defaults.font.size = 12;
      charts = [make(JSON.parse(source.textContent), chartColours())].flat();
    }
    document.addEventListener("htmx:afterSettle", (event) => { if (!parts || parts.includes(event.target.id)) draw(); });
    document.addEventListener("themechange", draw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    // The admin's own switch sets a class.
    new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["class"] });
    draw();
    return draw;
  }

  Object.assign(window.cobblestone, {
    number, wrapped, stripes, chartColours, tooltipLook, axisLook, readByKeyboard, verticalMarks, keepDrawn,
  });
})();
