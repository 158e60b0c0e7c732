"use strict";
(function () {
  const narrow = () => document.documentElement.clientWidth < 600;
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const made = [];
  const short = value => {
    for (const [limit, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]])
      if (Math.abs(value) >= limit) return +(value / (letter === "k" ? 1e3 : limit)).toPrecision(4) + letter;
    return String(+value.toPrecision(4));
  };
  function marks(moments) {
    return u => {
      const c = u.ctx;
      c.save();
      c.strokeStyle = c.fillStyle = colour("--fail");
      c.font = 12 * devicePixelRatio + "px system-ui,sans-serif";
      c.textBaseline = "top";
      c.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
      let row = 0;
      for (const [at, text] of moments) {
        const x = u.valToPos(at, "x", true);
        if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
        c.beginPath();
        c.moveTo(x, u.bbox.top);
        c.lineTo(x, u.bbox.top + u.bbox.height);
        c.stroke();
        const room = u.bbox.left + u.bbox.width - x > c.measureText(text).width + 6;
        c.textAlign = room ? "left" : "right";
        c.fillText(text, x + (room ? 4 : -4) * devicePixelRatio, u.bbox.top + (row++ % 4) * 15 * devicePixelRatio);
      }
      c.restore();
    };
  }
  function draw(figure) {
    const told = JSON.parse(figure.querySelector("script").textContent);
    const place = figure.querySelector(".drawing");
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const series = [{ label: told.x }];
    told.lines.forEach((name, at) => series.push({
      label: name, value: (u, value) => value == null ? "--" : short(value), stroke: colour("--c" + (at % 6 + 1)), width: 2, points: { show: told.columns[0].length < 60 },
      dash: told.dashes[at] ? told.dashes[at].split(" ").map(Number) : undefined,
      paths: told.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
    }));
    const options = {
      width: place.clientWidth, height: 230, series,
      axes: [{ ...axis, label: told.x, labelSize: 20, size: 32 }, { ...axis, label: told.y, labelSize: 16, size: 52, values: (u, ticks) => ticks.map(short) }],
      scales: { x: { time: false }, y: { range: (u, low, high) => [Math.min(0, low), high > 0 ? high * 1.05 : 1] } },
      legend: { show: !narrow(), live: true }, cursor: { drag: { x: true, y: false }, sync: told.group ? { key: told.group, scales: ["x", null] } : undefined },
      hooks: { drawAxes: [marks(told.moments)] },
    };
    place.replaceChildren();
    place.classList.add("live");
    const plot = new uPlot(options, told.columns, place);
    const legend = figure.querySelector(".legend");
    if (legend && !narrow()) legend.hidden = true;
    made.push({ figure, plot, place });
  }
  for (const figure of document.querySelectorAll("figure[data-chart]")) draw(figure);
  addEventListener("resize", () => made.forEach(({ plot, place }) => plot.setSize({ width: place.clientWidth, height: 230 })));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => location.reload());
})();
