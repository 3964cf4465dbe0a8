// Axes and what is drawn between them.

const kChart = { width: 1100, height: 340, left: 78, right: 20, top: 16, bottom: 44 };

// Steps of 1, 2 or 5 times a power of ten (`base` 1024: of two), about as many as asked for.
function ticks(low, high, count, base = 1000) {
  const rough = Math.max((high - low) / count, 1e-12);
  let step = base === 1024 ? 2 ** Math.ceil(Math.log2(rough)) : 10 ** Math.floor(Math.log10(rough));
  if (base !== 1024) step *= rough / step > 5 ? 10 : rough / step > 2 ? 5 : rough / step > 1 ? 2 : 1;
  const list = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9); k++) list.push(k * step);
  return list;
}
function decades(low, high) {
  const list = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power++) list.push(10 ** power);
  return list;
}

// x and y: {low, high, log, title, text, ticks}. Gives the drawing and what turns values into places.
function chart(x, y, size = kChart) {
  const scale = (axis, from, to) => {
    const at = axis.log ? Math.log10 : (value) => value, span = at(axis.high) - at(axis.low) || 1;
    return (value) => from + ((at(value) - at(axis.low)) / span) * (to - from);
  };
  const right = size.width - size.right, bottom = size.height - size.bottom;
  const atX = scale(x, size.left, right), atY = scale(y, bottom, size.top);
  const line = (a, b, c, d, kind) => draw("line", { x1: a, y1: b, x2: c, y2: d, class: kind });
  const xs = x.ticks || (x.log ? decades(x.low, x.high) : ticks(x.low, x.high, 8)), ys = y.ticks || (y.log ? decades(y.low, y.high) : ticks(y.low, y.high, 5));
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${size.width} ${size.height}` },
    xs.map((at) => [line(atX(at), size.top, atX(at), bottom, "grid"), draw("text", { x: atX(at), y: bottom + 17, "text-anchor": "middle" }, x.text(at))]),
    ys.map((at) => [line(size.left, atY(at), right, atY(at), "grid"), draw("text", { x: size.left - 7, y: atY(at) + 4, "text-anchor": "end" }, y.text(at))]),
    line(size.left, bottom, right, bottom, "axis"), line(size.left, size.top, size.left, bottom, "axis"),
    draw("text", { x: (size.left + right) / 2, y: size.height - 6, "text-anchor": "middle" }, x.title),
    draw("text", { x: 14, y: (size.top + bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(size.top + bottom) / 2})` }, y.title));
  return { svg, atX, atY, bottom, right };
}

// ---- the search ----

const kProgress = {
  seconds: { field: "seconds", text: (value) => digits(value, 3) },
  steps: { field: "step", text: (value) => digits(value, 6) },
  "graphs seen": { field: "graphs_seen", text: (value) => digits(value, 6) },
};

function trajectoryChart(points, by) {
  const { field, text } = kProgress[by], costs = points.map((point) => point.best_ms);
  const high = Math.max(...costs), low = Math.min(...costs), room = (high - low || high * 0.1 || 1) * 0.12;
  const last = points[points.length - 1][field];
  const { svg, atX, atY, bottom } = chart({ low: 0, high: last || 1, title: by, text },
    { low: Math.max(0, low - room), high: high + room, title: "best estimate, ms", text: (value) => digits(value, 4) });
  let path = `M${atX(points[0][field])},${atY(costs[0])}`;
  for (const point of points.slice(1)) path += `H${atX(point[field])}V${atY(point.best_ms)}`;
  svg.append(draw("path", { class: "area", d: path + `V${bottom}H${atX(points[0][field])}Z` }), draw("path", { class: "curve", d: path }));
  points.forEach((point, k) => {
    const what = k === 0 ? "the model" : k === points.length - 1 ? "end of the search" : "new best";
    svg.append(draw("circle", { class: "mark", cx: atX(point[field]), cy: atY(point.best_ms), r: 5,
      ...withTip(() => `${what}: ${milliseconds(point.best_ms)}\nstep ${point.step}, ${secondText(point.seconds)}, ${plural(point.graphs_seen, "graph")} seen`) }));
  });
  return svg;
}

function searchSection(report) {
  const search = report.search, points = search.trajectory.filter((point) => isNumber(point.best_ms));
  const about = facts([["search", `${search.kind}, stopped: ${search.stop_reason}`], ["limits", `alpha ${search.alpha}, ${plural(search.max_steps, "step")}, ${secondText(search.budget_seconds)}`],
    ["steps", String(search.steps)], ["graphs seen", String(search.graphs_seen)], ["rules", `${search.rules_offered} offered, tried at ${search.rules_tried} places`]]);
  if (points.length < 2) return [about, make("p", { class: "soft" }, "Nothing was searched.")];
  return [about, chooser(["graphs seen", "steps", "seconds"], (by) => trajectoryChart(points, by))];
}
