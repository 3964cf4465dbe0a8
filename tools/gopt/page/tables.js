// What needs no drawing: the summary, operators, accuracy, seconds.

function tile(label, value, more, kind) {
  return make("div", { class: "tile" }, make("div", { class: "label" }, label), make("div", { class: "value " + (kind || "") }, value), make("div", { class: "more" }, more || " "));
}

function summary(report) {
  const cost = report.cost, check = report.check, total = operatorTotals(report), phases = report.phases;
  const gain = cost.after_ms > 0 ? cost.before_ms / cost.after_ms : 1;
  const tiles = [tile(`estimated (${cost.kind} cost)`, `${digits(cost.before_ms)} → ${milliseconds(cost.after_ms)}`, `${gain.toFixed(2)} times as fast`)];
  if (report.latency) tiles.push(tile("measured", `${digits(report.latency.before_ms)} → ${milliseconds(report.latency.after_ms)}`, `${report.latency.speedup.toFixed(2)} times as fast${report.latency.cached ? ", from the cache" : ""}`));
  tiles.push(tile("kernels", `${cost.before_kernels} → ${cost.after_kernels}`), tile("operators", `${total.before} → ${total.after}`),
    tile("rewrites", String(report.applied.length), plural(Object.keys(report.rules).length, "rule") + ", each proved"),
    check.checked ? tile("accuracy", check.passed ? "passed" : "FAILED", check.engine === "none" ? "the graph is unchanged" : `${check.engine}, ${plural(check.draws.length, "kind")} of inputs`, check.passed ? "good" : "bad") : tile("accuracy", "not checked", tailOf(check.why_not, 40)),
    tile("this run", secondText(report.seconds), `${phases.length ? byteText(report.peak_memory_mb * 1048576) + " of memory" : ""}`));
  byId("tiles").append(...tiles);
  byId("model").textContent = report.model + (report.output ? " → " + report.output : "") + (report.emitted ? " → " + report.emitted : "");
  document.title = "gopt: " + report.model;
  const noteOf = (plan) => `the plan was timed whole: it took ${milliseconds(plan.own_ms)}, that of ${plan.other} ${milliseconds(plan.other_ms)}; ${plan.kept === "own" ? "it" : "the other"} is kept${plan.cached ? " (from the cache)" : ""}`;
  for (const note of [...report.notes, report.latency_note, ...(report.plan_latencies ?? []).map(noteOf)]) if (note) byId("notes").append(make("div", { class: "note" }, note));
}

function operatorTotals(report) {
  const counts = Object.values(report.operators), sum = (side) => counts.reduce((all, count) => all + count[side], 0);
  return { in_file: sum("in_file"), before: sum("before"), after: sum("after") };
}

function operatorsSection(report) {
  const number = (title) => ({ title, number: true }), total = operatorTotals(report);
  const most = Math.max(1, ...Object.values(report.operators).flatMap((count) => [count.before, count.after]));
  const change = (count) => (count.after === count.before ? "" : (count.after > count.before ? "+" : "−") + Math.abs(count.after - count.before));
  const bar = (count) => make("span", { class: "bar", style: `width: ${((count / most) * 220).toFixed(0)}px` });
  const rows = Object.entries(report.operators).sort((a, b) => b[1].before - a[1].before || b[1].after - a[1].after).map(([name, count]) => [name, String(count.in_file), String(count.before), String(count.after), change(count), bar(count.after)]);
  return table([{ title: "operator" }, number("in the file"), number("before"), number("after"), number("change"), { title: "after" }], rows, ["together", String(total.in_file), String(total.before), String(total.after), change(total), ""]);
}

function accuracySection(report) {
  const check = report.check, number = (title) => ({ title, number: true });
  if (!check.checked) return make("p", {}, "Not checked: " + check.why_not);
  if (check.engine === "none") return make("p", {}, "The graph is as it was: there is nothing to compare.");
  const rows = check.by_draw.flatMap((draw) => draw.outputs.map((output) => [output.output, draw.inputs, digits(output.max_absolute, 3), digits(output.max_relative, 3),
    make("span", { class: output.passed ? "good" : "bad" }, output.passed ? "agrees" : "differs"), output.note]));
  return [make("p", { class: "soft" }, `Original and result on fresh random inputs, run by ${check.engine === "cpu" ? "their code" : check.engine === "onnxruntime" ? "ONNX Runtime, from their files" : "the " + check.engine}. Ordinary inputs may differ by ${check.rtol} of the largest magnitude of an output, or ${check.atol}; unusual ones by more.${check.nodes_checked < check.nodes ? ` Checked are ${check.nodes_checked} of ${check.nodes} operators: nothing here runs ${check.left_out.join(", ")}.` : ""}${check.extents ? ` Symbols were drawn: ${check.extents}.` : ""}`),
    make("div", { class: "scroll" }, table([{ title: "output" }, { title: "inputs" }, number("max |a − b|"), number("max |a − b| / max |a|"), { title: "" }, { title: "" }], rows))];
}

function secondsSection(report) {
  const number = (title) => ({ title, number: true }), known = report.phases.reduce((sum, phase) => sum + phase.seconds, 0);
  const bar = (seconds) => make("span", { class: "bar", style: `width: ${((seconds / report.seconds) * 300).toFixed(0)}px` });
  const row = (name, seconds, times) => [name, secondText(seconds), times > 1 ? "× " + times : "", bar(seconds)];
  const phases = report.phases.map((phase) => row(phase.name, phase.seconds, phase.times));
  const rest = report.seconds - known;
  if (rest > 0.005 * report.seconds) phases.push(row("the rest", rest, 1));
  const passes = report.passes.map((pass) => [pass.pass, secondText(pass.seconds), pass.changed ? "changed the graph" : "nothing to do"]);
  return [table([{ title: "phase" }, number("time"), number(""), { title: "" }], phases, ["together", secondText(report.seconds), "", ""]),
    make("p", { class: "soft" }, report.cost.kernels_timed ? `${plural(report.cost.kernels_timed, "kernel")} timed that the cache did not know.` : ""),
    make("p", {}, "Passes of the search that the result is of:"), table([{ title: "pass" }, number("time"), { title: "" }], passes)];
}
