// How a timeline looks: lanes with what ran, marks, and the lines beneath. static/emulator/timeline.js moves it.
(() => {
  const LANE = 22;
  const GAP = 4;
  const LEFT = 84;
  const AXIS = 26;
  const MARKS = 18;
  const LINES = 72;
  const MANY_LANES = 24;
  const { token, localNumber } = window.cobblestone;

  function time(secs) {
    const day = Math.floor(secs / 86400);
    const pad = (value) => String(Math.floor(value)).padStart(2, "0");
    const clock = `${pad((secs / 3600) % 24)}:${pad((secs / 60) % 60)}`;
    return interpolate(gettext("day %(day)s, %(time)s"), { day, time: clock }, true);
  }

  const dayLabel = (day) => interpolate(gettext("day %(day)s"), { day }, true);

  function short(value) {
    const size = Math.abs(value);
    if (size < 1e4 && (size === 0 || size >= 0.01)) return localNumber(value, { maximumSignificantDigits: 3 });
    const [mantissa, exponent] = value.toExponential(1).split("e");
    return `${localNumber(Number(mantissa), { minimumFractionDigits: 1 })}e${exponent}`;
  }

  // The drawing of one run on its canvas. facts: lanes, projects, kinds, palette; view: the times at its edges, which
  // several drawings may share.
  function timelineDrawing(canvas, { lanes, projects, kinds, palette }, view) {
    const pen = canvas.getContext("2d");
    const laneHeight = lanes.length > MANY_LANES ? Math.max(4, Math.floor((LANE * MANY_LANES) / lanes.length)) : LANE;
    const laneGap = lanes.length > MANY_LANES ? 1 : GAP;
    const lanesHeight = lanes.length * (laneHeight + laneGap);
    const height = AXIS + lanesHeight + MARKS + 2 * LINES + 44;
    let colours = {};
    let width = 0;
    let drawn = null;
    function readColours() {
      colours = {
        data: Array.from({ length: 8 }, (_, index) => token(`--data-${index}`)),
        other: token("--data-other"),
        text: token("--text"),
        muted: token("--text-muted"),
        line: token("--line"),
        sunk: token("--surface-sunk"),
        error: token("--error"),
        accent: token("--accent"),
      };
    }

    const shade = (project) => colours.data[palette[project]];
    const x = (secs) => LEFT + ((secs - view.from) / (view.to - view.from)) * (width - LEFT);
    const secsAt = (pixel) => view.from + ((pixel - LEFT) / (width - LEFT)) * (view.to - view.from);
    const laneTop = (lane) => AXIS + lane * (laneHeight + laneGap);

    function tickSecs() {
      const steps = [60, 300, 900, 3600, 3 * 3600, 6 * 3600, 86400, 2 * 86400, 7 * 86400, 30 * 86400, 91 * 86400, 365 * 86400];
      const least = (view.to - view.from) / Math.max(2, (width - LEFT) / 110);
      return steps.find((step) => step >= least) ?? Math.ceil(least / (365 * 86400)) * 365 * 86400;
    }

    function drawAxis() {
      pen.font = "12px system-ui, sans-serif";
      pen.textBaseline = "middle";
      const step = tickSecs();
      for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
        pen.strokeStyle = colours.line;
        pen.beginPath();
        pen.moveTo(x(at), AXIS - 4);
        pen.lineTo(x(at), height - 4);
        pen.stroke();
        pen.fillStyle = colours.muted;
        pen.textAlign = x(at) > width - 40 ? "right" : "center";
        pen.fillText(step >= 86400 ? dayLabel(Math.round(at / 86400)) : time(at), Math.max(x(at), LEFT + 20), 10);
      }
    }

    function drawLanes() {
      lanes.forEach(([kind, number], lane) => {
        pen.fillStyle = colours.sunk;
        pen.fillRect(LEFT, laneTop(lane), width - LEFT, laneHeight);
        if (laneHeight >= 12) {
          pen.fillStyle = colours.muted;
          pen.textAlign = "left";
          pen.fillText(`${kind} ${number}`, 0, laneTop(lane) + laneHeight / 2, LEFT - 8);
        }
      });
      pen.save();
      pen.beginPath();
      pen.rect(LEFT, 0, width - LEFT, height);
      pen.clip();
      drawn.states.forEach(([from, to]) => {
        pen.globalAlpha = 0.35;
        pen.fillStyle = colours.other;
        pen.fillRect(x(from), AXIS, Math.max(x(to) - x(from), 0.5), lanesHeight);
        pen.globalAlpha = 1;
      });
      if (drawn.blocks) drawn.blocks.forEach(drawBlock);
      else drawn.cells.forEach(drawCell);
      pen.restore();
    }

    function drawBlock([lane, from, to, project, usage, byDeadline]) {
      const left = x(from);
      const wide = Math.max(x(to) - left, 0.5);
      const high = Math.max(2, laneHeight * Math.min(1, usage));
      const top = laneTop(lane) + laneHeight - high;
      pen.fillStyle = shade(project);
      pen.fillRect(left, top, wide > 3 ? wide - 1 : wide, high);
      if (byDeadline && wide > 2) {
        pen.fillStyle = colours.error;
        pen.fillRect(left, top, wide - 1, 3);
      }
    }

    // A column that several projects share is a stack of their colours, as high as their parts of it.
    function drawCell([lane, first, last, stack]) {
      const step = (drawn.to - drawn.from) / drawn.width;
      const left = x(drawn.from + first * step);
      const wide = x(drawn.from + last * step) - left + 0.4;
      let bottom = laneTop(lane) + laneHeight;
      stack.forEach(([project, part]) => {
        const high = laneHeight * part;
        bottom -= high;
        pen.fillStyle = shade(project);
        pen.fillRect(left, bottom, wide, high);
      });
    }

    function drawMarks() {
      const top = AXIS + lanesHeight;
      pen.save();
      pen.beginPath();
      pen.rect(LEFT, 0, width - LEFT, height);
      pen.clip();
      drawn.rpcs.rows.forEach(([at, project]) => {
        pen.fillStyle = shade(project);
        pen.beginPath();
        pen.moveTo(x(at), top + 2);
        pen.lineTo(x(at) + 4, top + 11);
        pen.lineTo(x(at) - 4, top + 11);
        pen.fill();
      });
      pen.fillStyle = colours.error;
      drawn.misses.rows.forEach(([at]) => {
        pen.fillRect(x(at) - 0.75, AXIS, 1.5, lanesHeight + 14);
        pen.fillRect(x(at) - 0.75, AXIS, 8, 6);
      });
      pen.restore();
    }

    function drawLines(top, title, series, shadeOf) {
      const values = series.flat();
      const low = Math.min(0, ...values);
      const high = Math.max(0, ...values, low + 1e-12);
      const y = (value) => top + 16 + (1 - (value - low) / (high - low)) * (LINES - 20);
      pen.fillStyle = colours.muted;
      pen.textAlign = "left";
      pen.fillText(title, LEFT, top + 4);
      pen.fillText(short(high), 0, y(high) + 4, LEFT - 8);
      pen.fillText(short(low), 0, y(low) - 4, LEFT - 8);
      pen.strokeStyle = colours.line;
      pen.strokeRect(LEFT, top + 16, width - LEFT, LINES - 20);
      pen.save();
      pen.beginPath();
      pen.rect(LEFT, top, width - LEFT, LINES);
      pen.clip();
      series.forEach((line, number) => {
        pen.strokeStyle = shadeOf(number);
        pen.setLineDash(number % 2 ? [5, 3] : []);
        pen.lineWidth = 1.5;
        pen.beginPath();
        line.forEach((value, index) => pen.lineTo(x(drawn.levels.at[index]), y(value)));
        pen.stroke();
      });
      pen.restore();
      pen.lineWidth = 1;
    }

    function draw(data) {
      drawn = data;
      const ratio = window.devicePixelRatio || 1;
      width = canvas.clientWidth;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, height);
      if (!drawn) return;
      drawAxis();
      drawLanes();
      drawMarks();
      const top = AXIS + lanesHeight + MARKS + 8;
      const hours = drawn.levels.buffer.map((line) => line.map((secs) => secs / 3600));
      const buffer = interpolate(gettext("Work buffer (h): %(kinds)s"), { kinds: kinds.join(", ") }, true);
      drawLines(top, buffer, hours, (number) => [colours.text, colours.accent, colours.muted][number % 3]);
      const standing = width < 480 ? gettext("Project standing") : gettext("Project standing (recent credit or debt)");
      drawLines(top + LINES + 14, standing, drawn.levels.standing, shade);
    }

    function blockText([, from, to, project, , byDeadline, job]) {
      const facts = { job, project: projects[project], from: time(from), to: time(to) };
      if (byDeadline) {
        return interpolate(gettext("task %(job)s of %(project)s, %(from)s to %(to)s, to meet its deadline"), facts, true);
      }
      return interpolate(gettext("task %(job)s of %(project)s, %(from)s to %(to)s"), facts, true);
    }

    function cellText([, , , stack]) {
      const percent = { style: "percent" };
      return stack
        .map(([project, part]) => {
          const facts = { project: projects[project], part: localNumber(part, percent) };
          return interpolate(gettext("%(project)s %(part)s"), facts, true);
        })
        .join(", ");
    }

    // What is drawn at a point of the canvas: the time, the lane, words, and the job if there is one.
    function at(left, top) {
      const secs = secsAt(left);
      const lane = Math.floor((top - AXIS) / (laneHeight + laneGap));
      if (!drawn || lane < 0 || lane >= lanes.length || secs < view.from) return null;
      const block = drawn.blocks?.find(([of, from, to]) => of === lane && from <= secs && secs < to);
      const column = ((secs - drawn.from) / (drawn.to - drawn.from)) * drawn.width;
      const cell = drawn.cells?.find(([of, first, last]) => of === lane && first <= column && column < last);
      const what = block ? blockText(block) : cell ? cellText(cell) : gettext("nothing runs");
      return { secs, job: block?.[6], words: `${time(secs)} · ${lanes[lane].join(" ")}: ${what}` };
    }

    readColours();
    return { draw, at, secsAt, readColours, plotWidth: () => Math.max(1, Math.round(canvas.clientWidth - LEFT)) };
  }

  window.cobblestone.timelineDrawing = timelineDrawing;
  window.cobblestone.runTime = time;
})();
