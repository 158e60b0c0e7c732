"use strict";
(function () {
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const made = [];
  const short = value => {
    for (const [limit, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]])
      if (Math.abs(value) >= limit) return +(value / (letter === "k" ? 1e3 : limit)).toPrecision(4) + letter;
    return String(+value.toPrecision(4));
  };
  const FONT = "px system-ui,sans-serif", ROW = 15, ROWS = 4;
  // Texts of moments stand above the plot, each in the lowest row in which it has room; one without room is a line alone.
  function placed(moments, toX, right, wide) {
    const taken = [];
    return moments.map(([at, text]) => {
      const x = toX(at), left = Math.min(x, right - wide(text));
      let row = 0;
      while (row < ROWS && taken[row] > left) row++;
      if (row < ROWS) taken[row] = left + wide(text);
      return { x, left, text, row };
    });
  }
  function marks(moments) {
    return u => {
      const c = u.ctx, ratio = devicePixelRatio, right = u.bbox.left + u.bbox.width;
      c.save();
      c.strokeStyle = c.fillStyle = colour("--fail");
      c.font = 12 * ratio + FONT;
      c.textBaseline = "bottom";
      c.textAlign = "left";
      c.setLineDash([4 * ratio, 3 * ratio]);
      const shown = moments.filter(([at]) => at >= u.scales.x.min && at <= u.scales.x.max);
      for (const mark of placed(shown, at => u.valToPos(at, "x", true), right, text => c.measureText(text).width + 8 * ratio)) {
        const top = u.bbox.top - mark.row * ROW * ratio, fits = mark.row < ROWS && top >= ROW * ratio;
        c.beginPath();
        c.moveTo(mark.x, fits ? top : u.bbox.top);
        c.lineTo(mark.x, u.bbox.top + u.bbox.height);
        c.stroke();
        if (fits) c.fillText(mark.text, mark.left + (mark.left < mark.x ? 0 : 4 * ratio), top);
      }
      c.restore();
    };
  }
  function live(legend) {
    const at = legend.querySelector(".at") || legend.appendChild(document.createElement("li"));
    at.className = "at";
    legend.hidden = false;
    const values = legend.querySelectorAll(".value");
    return u => {
      const index = u.cursor.idx;
      at.textContent = index == null ? "" : short(u.data[0][index]) + " " + u.axes[0].label;
      values.forEach((value, line) => {
        const y = index == null ? null : u.data[line + 1][index];
        value.textContent = index == null ? "" : ": " + (y == null ? "--" : short(y)) + " " + u.axes[1].label;
      });
    };
  }
  function draw(figure) {
    const told = JSON.parse(figure.querySelector("script").textContent);
    const place = figure.querySelector(".drawing");
    const [first, last] = told.ends, width = place.clientWidth;
    const across = at => 52 + (at - first) / (last - first) * (width - 60);
    const rows = Math.max(0, ...placed(told.moments, across, width, text => 7 * text.length + 8).map(({ row }) => Math.min(row + 1, ROWS)));
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const series = [{ label: told.x }];
    told.lines.forEach((name, at) => series.push({
      label: name, stroke: colour("--c" + (at % 6 + 1)), width: 2, points: { show: told.columns[0].length < 60 },
      dash: told.dashes[at] ? told.dashes[at].split(" ").map(Number) : undefined,
      paths: told.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
    }));
    const xs = told.columns[0], whole = (low, high) => low == null || low <= xs[0] && high >= xs[xs.length - 1];
    const options = {
      width, height: 220 + rows * ROW, series, padding: [4 + rows * ROW, null, null, null],
      axes: [{ ...axis, label: told.x, labelSize: 20, size: 32 }, { ...axis, label: told.y, labelSize: 16, size: 52, values: (u, ticks) => ticks.map(short) }],
      scales: { x: { time: false, range: (u, low, high) => whole(low, high) ? told.ends : [low, high] }, y: { range: (u, low, high) => told.reach[1] > told.reach[0] ? [told.reach[0], told.reach[1] * 1.05] : [0, 1] } },
      legend: { show: false }, cursor: { drag: { x: true, y: false }, sync: told.group ? { key: told.group, scales: ["x", null] } : undefined },
      hooks: { drawAxes: [marks(told.moments)], setCursor: [live(figure.querySelector(".legend"))] },
    };
    place.classList.add("live");
    made.push({ place, plot: new uPlot(options, told.columns, place) });
  }
  const all = () => document.querySelectorAll("figure[data-chart]").forEach(draw);
  all();
  addEventListener("resize", () => made.forEach(({ plot, place }) => plot.setSize({ width: place.clientWidth, height: plot.height })));
  addEventListener("beforeprint", () => document.querySelectorAll("details.edge").forEach(edge => { edge.open = true; }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    made.splice(0).forEach(({ plot }) => plot.destroy());
    all();
  });
})();
