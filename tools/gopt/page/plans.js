// What a plan's kernels do and where its tensors lie: the roofline, the table of kernels, the arena over time.

const kKernelKinds = ["convolution", "matrix product", "pooling", "generated", "reorder"];

function plansOf(report) { return ["before", "after"].filter((side) => report.plans[side]); }
function noPlan(report) { return make("p", { class: "soft" }, "There is no plan of kernels: " + (report.plans.note || "none was made.")); }
function kernelClass(plan, kernel) {
  const kinds = [...new Set(plan.kernels.map((each) => each.kind))].sort();
  return "kind" + (kinds.indexOf(kernel.kind) % 5);
}
const rateOf = (kernel) => kernel.operations / (kernel.estimated_ms * 1e6);  // GFLOP/s
const kernelText = (graphs, side, kernel) => [`${kernel.name}: ${kernel.kind} ${kernel.implementation}`, opsOf(graphs, side, kernel), milliseconds(kernel.estimated_ms),
  `${countText(kernel.operations)} operations, ${byteText(kernel.bytes)}`,
  kernel.operations > 0 ? `${digits(rateOf(kernel), 3)} GFLOP/s at ${digits(kernel.operations / kernel.bytes, 3)} operations a byte` : `${digits(kernel.bytes / (kernel.estimated_ms * 1e6), 3)} GB/s, moves data only`].join("\n");
const opsOf = (graphs, side, kernel) => kernel.nodes.map((id) => graphs.node(side, id).op).join(" ");

function pickKernel(graphs, side, kernel) {
  const other = new Set(kernel.nodes.flatMap((id) => graphs.counterparts(side, id)));
  graphs.pickSets(side === "before" ? { before: kernel.nodes, after: [...other] } : { before: [...other], after: kernel.nodes }, `${side}: ${kernel.name}`);
}

// ---- the roofline ----

function rooflineChart(report, graphs, side) {
  const plan = report.plans[side], peak = report.cost.roofline, threads = plan.threads;
  const kernels = plan.kernels.filter((kernel) => kernel.operations > 0 && kernel.bytes > 0 && kernel.estimated_ms > 0);
  if (!kernels.length) return make("p", { class: "soft" }, "No kernel computes anything.");
  const bounds = (values) => ({ low: 10 ** Math.floor(Math.log10(Math.min(...values))), high: 10 ** Math.ceil(Math.log10(Math.max(...values) * 1.05)) });
  const x = bounds([...kernels.map((kernel) => kernel.operations / kernel.bytes), peak.gflops / peak.gigabytes_per_second]);
  const y = bounds([...kernels.map(rateOf), peak.gflops * 1.5]);
  const drawing = chart({ ...x, log: true, title: "operations a byte", text: (value) => digits(value, 2) }, { ...y, log: true, title: "GFLOP/s", text: (value) => digits(value, 2) }, { ...kChart, height: 420 });
  const slowest = Math.max(...kernels.map((kernel) => kernel.estimated_ms));
  for (const kernel of [...kernels].sort((a, b) => b.estimated_ms - a.estimated_ms))
    drawing.svg.append(draw("circle", { class: "kernel " + kernelClass(plan, kernel), "data-kernel": kernel.name, cx: drawing.atX(kernel.operations / kernel.bytes).toFixed(1), cy: drawing.atY(rateOf(kernel)).toFixed(1),
      r: (3.5 + 12 * Math.sqrt(kernel.estimated_ms / slowest)).toFixed(1), onclick: () => pickKernel(graphs, side, kernel), ...withTip(() => kernelText(graphs, side, kernel)) }));
  drawing.svg.append(...roof(drawing, x, y, peak, threads));
  return drawing.svg;
}
// Lines, and above all else what they mean.
function roof({ atX, atY }, x, y, peak, threads) {
  const ridge = peak.gflops / peak.gigabytes_per_second, start = Math.max(x.low, y.low / peak.gigabytes_per_second), low = atY(start * peak.gigabytes_per_second);
  const slope = Math.atan2(atY(peak.gflops) - low, atX(ridge) - atX(start)) * 180 / Math.PI, px = (atX(start) + atX(ridge)) / 2, py = (low + atY(peak.gflops)) / 2 - 8;
  return [draw("path", { class: "roof", d: `M${atX(start)},${low}L${atX(ridge)},${atY(peak.gflops)}H${atX(x.high)}` }),
    draw("text", { class: "roof-label", x: atX(ridge) - 10, y: atY(peak.gflops) + 4, "text-anchor": "end" }, `peak${threads > 1 ? " of one thread" : ""}: ${digits(peak.gflops, 3)} GFLOP/s`),
    draw("text", { class: "roof-label", x: px, y: py, "text-anchor": "middle", transform: `rotate(${slope} ${px} ${py})` }, `memory: ${digits(peak.gigabytes_per_second, 3)} GB/s`)];
}

function kernelLegend(plan) {
  const kinds = new Map(plan.kernels.map((kernel) => [kernel.kind, kernelClass(plan, kernel)]));
  const spent = (kind) => plan.kernels.filter((kernel) => kernel.kind === kind);
  return make("div", { class: "legend" }, [...kinds].sort().map(([kind, color]) => make("span", {}, make("i", { class: color }),
    `${kind}: ${spent(kind).length}, ${milliseconds(spent(kind).reduce((sum, kernel) => sum + kernel.estimated_ms, 0))}`)));
}

function kernelTable(graphs, plan, side) {
  const slowest = Math.max(...plan.kernels.map((kernel) => kernel.estimated_ms));
  const number = (title) => ({ title, number: true });
  const columns = [number("#"), { title: "kernel" }, { title: "computes" }, number("ms"), { title: "" }, number("of all"), number("operations"), number("bytes"), number("GFLOP/s")];
  const rows = plan.kernels.map((kernel, k) => ({ kernel, k })).sort((a, b) => b.kernel.estimated_ms - a.kernel.estimated_ms).map(({ kernel, k }) => ({
    attributes: { class: "link", "data-kernel-row": kernel.name, onclick: () => pickKernel(graphs, side, kernel) },
    cells: [String(k), kernel.kind + (kernel.implementation ? " " + kernel.implementation : ""), tailOf(opsOf(graphs, side, kernel), 90), digits(kernel.estimated_ms),
      make("span", { class: "bar", style: `width: ${((kernel.estimated_ms / slowest) * 90).toFixed(0)}px` }), percentText(kernel.estimated_ms / plan.estimated_ms),
      countText(kernel.operations), byteText(kernel.bytes), kernel.operations > 0 ? digits(rateOf(kernel), 3) : "–"] }));
  return make("div", { class: "scroll" }, table(columns, rows));
}

function kernelsSection(report, graphs) {
  const sides = plansOf(report);
  if (!sides.length) return noPlan(report);
  const isMeasured = report.cost.kind === "measured" && !(report.plan_latencies ?? []).some((plan) => plan.kept === "other" && plan.other === "analytic costs");
  const measured = isMeasured ? "Times are of kernels built and timed on this machine; what was not timed is estimated." : "Times are the analytic cost's estimates.";
  return [make("p", { class: "soft" }, measured + " The peak of arithmetic is this processor's, measured on one thread; that of memory is what the analytic cost takes, so that kernels whose data is in a cache lie above it."),
    chooser(sides, (side) => [kernelLegend(report.plans[side]), rooflineChart(report, graphs, side), kernelTable(graphs, report.plans[side], side)])];
}

// ---- memory ----

const inArena = (plan) => plan.buffers.filter((buffer) => buffer.place === "arena" && buffer.view_of === null && buffer.first_kernel >= 0);
const bufferName = (graphs, side, buffer) => (buffer.value ? graphs.node(side, buffer.value[0]) : { op: "", name: "" });

function liveChart(plan) {
  const count = plan.kernels.length, high = Math.max(...plan.live_bytes, plan.arena_bytes);
  const drawing = chart({ low: 0, high: count, title: "kernel, in launch order", text: (at) => digits(at, 6), ticks: ticks(0, count, 10).filter(Number.isInteger) },
    { low: 0, high: high * 1.12, title: "live bytes", text: byteText, ticks: ticks(0, high, 4, 1024) }, { ...kChart, height: 220 });
  let path = `M${drawing.atX(0)},${drawing.bottom}`;
  plan.live_bytes.forEach((bytes, k) => { path += `V${drawing.atY(bytes).toFixed(1)}H${drawing.atX(k + 1).toFixed(1)}`; });
  drawing.svg.append(draw("path", { class: "area", d: path + `V${drawing.bottom}Z` }), draw("path", { class: "curve", d: path }),
    draw("path", { class: "roof", d: `M${drawing.atX(0)},${drawing.atY(plan.arena_bytes)}H${drawing.right}` }),
    draw("text", { class: "roof-label", x: drawing.right - 4, y: drawing.atY(plan.arena_bytes) - 5, "text-anchor": "end" }, `arena: ${byteText(plan.arena_bytes)}`));
  return drawing.svg;
}

function arenaChart(report, graphs, side) {
  const plan = report.plans[side], count = plan.kernels.length;
  const drawing = chart({ low: 0, high: count, title: "kernel, in launch order", text: (at) => digits(at, 6), ticks: ticks(0, count, 10).filter(Number.isInteger) },
    { low: 0, high: plan.arena_bytes, title: "offset in the arena", text: byteText, ticks: ticks(0, plan.arena_bytes, 6, 1024) }, { ...kChart, height: 420 });
  for (const buffer of inArena(plan)) {
    const node = bufferName(graphs, side, buffer), left = drawing.atX(buffer.first_kernel), top = drawing.atY(buffer.offset + buffer.bytes);
    drawing.svg.append(draw("rect", { class: "buffer", fill: bufferColor(node.kind), x: left.toFixed(1), y: top.toFixed(1), width: Math.max(1, drawing.atX(buffer.last_kernel + 1) - left).toFixed(1),
      height: Math.max(1, drawing.atY(buffer.offset) - top).toFixed(1), onclick: () => { if (buffer.value) { graphs.open(); graphs.pick(side, buffer.value[0], true); } },
      ...withTip(() => `${node.op} ${node.name}\n${buffer.element}[${buffer.dims.join(",")}] ${buffer.layout}, ${byteText(buffer.bytes)} at ${byteText(buffer.offset)}\nkernels ${buffer.first_kernel} to ${buffer.last_kernel}`) }));
  }
  return drawing.svg;
}
const bufferColor = (kind) => ({ product: "#5b84d6", elementwise: "#4aa96c", movement: "#b79a4a", other: "#9a6cc9" })[kind] || "#8a93a1";

function memorySection(report, graphs) {
  const sides = plansOf(report);
  if (!sides.length) return noPlan(report);
  const sums = (side) => {
    const plan = report.plans[side], of = (place) => plan.buffers.filter((buffer) => buffer.place === place && buffer.view_of === null).reduce((sum, buffer) => sum + buffer.bytes, 0);
    return facts([["arena", `${byteText(plan.arena_bytes)}, most in use at a time: ${byteText(Math.max(0, ...plan.live_bytes))}`], ["weights", byteText(of("weight"))], ["inputs, outputs", `${byteText(of("input"))}, ${byteText(of("output"))}`]]);
  };
  const charts = (side) => (report.plans[side].arena_bytes > 0 ? [make("p", { class: "soft" }, "A rectangle a buffer: the kernels between which it is in use, and the bytes of the arena that it takes."), liveChart(report.plans[side]), arenaChart(report, graphs, side)] : make("p", { class: "soft" }, "No tensor lies in an arena."));
  return chooser(sides, (side) => [sums(side), charts(side)].flat());
}
