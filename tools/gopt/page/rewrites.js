// The rewrites on the way to the result, a step each: which rule, where, its proof, and what it gained.

function rewriteSteps(report) {
  const steps = new Map();
  for (const use of report.applied) {
    if (!steps.has(use.step)) steps.set(use.step, []);
    steps.get(use.step).push(use);
  }
  return [...steps.values()];
}

const setsOf = (uses) => ({ before: [...new Set(uses.flatMap((use) => use.replaced))], after: [...new Set(uses.flatMap((use) => use.made))] });

function rewriteList(report, graphs) {
  const steps = rewriteSteps(report);
  const list = steps.map((uses, k) => rewrite(report, graphs, uses, k));
  const refused = report.refused.map((rule) => make("div", { class: "note" }, `${rule.rule} was not applied: ${rule.why}`));
  if (!list.length) list.push(make("p", { class: "soft" }, "No rule was applied."));
  return [...list, ...refused];
}

function rewrite(report, graphs, uses, number) {
  const use = uses[0], gain = use.cost_before_ms - use.cost_after_ms, sets = setsOf(uses);
  const body = make("div", { class: "body" });
  const part = make("details", { class: "rewrite", "data-rule": use.rule, onmouseenter: () => graphs.hoverSets(sets), onmouseleave: () => graphs.hoverSets({ before: [], after: [] }) },
    make("summary", {}, make("span", { class: "soft" }, `${number + 1}.`), make("span", { class: "rule" }, use.rule, make("span", { class: "soft" }, uses.length > 1 ? `  × ${uses.length}` : "")),
      make("span", {}, `${digits(use.cost_before_ms)} → ${milliseconds(use.cost_after_ms)}`),
      make("span", { class: gain >= 0 ? "good" : "bad" }, (gain >= 0 ? "−" : "+") + milliseconds(Math.abs(gain)), `  (${percentText(Math.abs(gain) / use.cost_before_ms)})`),
      make("span", { class: "soft" }, `proved, ${plural(use.proof.obligations, "obligation")}, ${use.proof.solver}`),
      make("button", { onclick: (event) => { event.preventDefault(); graphs.pickSets(sets, `${number + 1}. ${use.rule}`); } }, "show")),
    body);
  part.addEventListener("toggle", () => { if (part.open && !body.hasChildNodes()) body.append(...rewriteBody(report, graphs, uses)); });
  return part;
}

function rewriteBody(report, graphs, uses) {
  const use = uses[0], rule = report.rules[use.rule];
  const parts = rule ? [ruleSides(rule)] : [];
  const marks = rule && rule.marks.length ? rule.marks.map((mark) => make("div", {}, make("b", {}, mark.name), ": " + mark.meaning)) : "none";
  parts.push(facts([["proof", `${plural(use.proof.obligations, "obligation")}, each shown by ${use.proof.solver} in this run, for all sizes`],
    ["digest of the obligations", make("code", {}, use.proof.digest)], ["under the definitions", make("code", {}, use.proof.definitions)],
    ["content of the rule", make("code", {}, use.content_hash)], ["origin", rule ? rule.origin || "not said" : "not said"], ["what floats may make of it", marks],
    [uses.length > 1 ? "applied together to" : "applied to", make("div", { class: "matches" }, uses.map((each) => matchLine(graphs, each)))]]));
  if (rule) parts.push(make("details", {}, make("summary", { class: "soft" }, "the rule as its file has it"), make("pre", {}, rule.text)));
  return parts;
}

function matchLine(graphs, use) {
  const sets = setsOf([use]);
  return make("span", { class: "chip", onclick: () => graphs.pickSets(sets, use.rule), onmouseenter: () => graphs.hoverSets(sets) }, use.matched.map((name) => tailOf(name, 40)).join(", "));
}

function ruleSides(rule) {
  const lines = rule.text.split("\n"), left = lines.indexOf("  left"), right = lines.indexOf("  right");
  const end = lines.findIndex((line, k) => k > right && !line.startsWith("   "));
  const text = (from, to) => lines.slice(from, to).map((line) => line.replace(/^ {2,4}/, "")).join("\n");
  const side = (title, graph, own) => make("div", {}, make("h4", {}, title), stillGraph(graph), own ? make("pre", {}, own) : null);
  const isWhole = left >= 0 && right > left && end > right;
  const about = rule.any_rank ? " (drawn: an instance of few axes; the rule holds for any)" : "";
  return make("div", {}, isWhole && left > 1 ? make("pre", {}, text(1, left)) : null, make("div", { class: "sides" },
    side("left" + about, rule.left, isWhole ? text(left + 1, right) : ""), side("right" + about, rule.right, isWhole ? text(right + 1, end) : "")),
    isWhole ? conditionLines(lines.slice(end)) : null);
}
function conditionLines(lines) {
  const conditions = lines.filter((line) => /^ {2}(when|region|types)\b/.test(line)).map((line) => line.trim());
  return conditions.length ? make("pre", {}, conditions.join("\n")) : null;
}
