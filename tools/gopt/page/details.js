// Both graphs and what links them: a node of one stands for nodes of the other, a rewrite for nodes of both.

const kKinds = { product: "products, convolutions", elementwise: "elementwise", movement: "data movement", other: "reductions, pools, norms", input: "inputs, outputs", constant: "weights", opaque: "kept as they are" };

class Graphs {
  constructor(report) {
    this.report = report;
    this.graphs = report.graphs;
    this.became = this.graphs.before.nodes.map(() => []);
    this.graphs.after.nodes.forEach((node, id) => (node.from || []).forEach((origin) => this.became[origin].push(id)));
    this.changed = this.changedNodes();
    this.listeners = [];
  }

  // Those that a rule replaced or made, and those of one graph that are nowhere in the other as they are.
  changedNodes() {
    const before = new Set(this.graphs.before.nodes.keys()), after = new Set();
    this.graphs.after.nodes.forEach((node, id) => {
      const same = (node.from || []).filter((origin) => ["op", "attributes", "name"].every((part) => this.graphs.before.nodes[origin][part] === node[part]));
      same.forEach((origin) => before.delete(origin));
      if (!same.length) after.add(id);
    });
    for (const use of this.report.applied) {
      use.replaced.forEach((id) => before.add(id));
      use.made.forEach((id) => after.add(id));
    }
    return { before, after };
  }

  node(side, id) { return this.graphs[side].nodes[id]; }
  otherSide(side) { return side === "before" ? "after" : "before"; }
  // In the other graph.
  counterparts(side, id) { return side === "before" ? this.became[id] : this.graphs.after.nodes[id].from || []; }
  usesOf(side, id) {
    const list = side === "before" ? "replaced" : "made";
    return this.report.applied.filter((use) => use[list].includes(id));
  }

  section() {
    const changedHere = [...this.changed.before].length + [...this.changed.after].length > 0;
    this.views = {};
    for (const side of ["before", "after"]) this.views[side] = new GraphView(side, this.graphs[side], this.changed[side], this);
    this.panel = make("div", { class: "details" });
    this.clear();
    queueMicrotask(() => this.begin());
    return [this.toolbar(changedHere), make("div", { class: "graphs" }, this.views.before.element, this.views.after.element), this.panel];
  }
  begin() {
    for (const side of ["before", "after"]) this.views[side].begin(this.changed[side]);
    document.documentElement.dataset.drawn = "yes";
  }

  toolbar(changedHere) {
    const shown = new Set([...this.graphs.before.nodes, ...this.graphs.after.nodes].map((node) => node.kind));
    const names = Object.keys(kKinds).filter((kind) => shown.has(kind) && kind !== "constant");
    const weights = make("input", { type: "checkbox", onchange: () => this.showWeights(weights.checked) });
    return make("div", { class: "toolbar" }, searchBox(this), make("button", { onclick: () => this.clear() }, "clear"),
      make("label", {}, weights, " weights"),
      make("span", { class: "legend" }, names.map((kind) => make("span", {}, make("i", { style: `background: var(--${kind})` }), kKinds[kind])),
        changedHere ? make("span", {}, make("i", { style: "border: 2px solid var(--accent)" }), "changed") : null),
      make("span", { class: "gap" }), make("span", { class: "soft" }, "drag, scroll, Ctrl+scroll; click: what became of it"));
  }
  showWeights(shown) {
    for (const view of Object.values(this.views)) view.show(shown);
    if (this.last) this.highlight(this.last.sets, this.last.side, this.last.id);
  }

  // ---- picking ----

  hover(side, id) {
    if (!this.views) return;
    const other = this.otherSide(side);
    this.views[side].mark("hovered", id === null ? [] : [id]);
    this.views[other].mark("hovered", id === null ? [] : this.counterparts(side, id));
  }
  hoverSets(sets) { for (const side of ["before", "after"]) if (this.views) this.views[side].mark("hovered", sets[side]); }

  pick(side, id, reveals = false) {
    const sets = { before: [], after: [] }, other = this.otherSide(side);
    sets[side] = [id];
    sets[other] = this.counterparts(side, id);
    this.highlight(sets, side, id);
    this.views[other].reveal(sets[other]);
    if (reveals) this.views[side].reveal([id]);
    this.panel.replaceChildren(this.nodeDetails(side, id));
  }
  pickSets(sets, title) {
    this.open();
    this.highlight(sets, null, null);
    for (const side of ["before", "after"]) this.views[side].reveal(sets[side]);
    this.panel.replaceChildren(make("h3", {}, title), this.setDetails(sets));
  }
  highlight(sets, side, id) {
    this.last = { sets, side, id };
    for (const each of ["before", "after"]) {
      this.views[each].mark("linked", sets[each]);
      this.views[each].mark("picked", each === side ? [id] : [], each === side ? id : null);
    }
    for (const listener of this.listeners) listener(sets);
  }
  clear() {
    this.highlight({ before: [], after: [] }, null, null);
    this.panel.replaceChildren(make("span", { class: "soft" }, "Click a node, a rewrite or a kernel: what it was and what became of it is marked in both graphs."));
  }
  open() {
    byId("graphs").open = true;
    byId("graphs").scrollIntoView({ block: "nearest" });
  }

  // ---- what is said of it ----

  chip(side, id) {
    const node = this.node(side, id);
    return make("span", { class: "chip", onclick: () => this.pick(side, id, true), onmouseenter: () => this.hover(side, id), onmouseleave: () => this.hover(side, null) },
      node.op + (node.name ? "  " + tailOf(node.name, 46) : ""), node.weight ? make("span", { class: "soft" }, "  weight") : null);
  }
  // What runs comes before weights.
  chips(side, ids) {
    const ordered = [...ids].sort((a, b) => this.node(side, a).weight - this.node(side, b).weight || a - b);
    return ordered.length ? ordered.map((id) => this.chip(side, id)) : "nothing";
  }

  nodeDetails(side, id) {
    const node = this.node(side, id), other = this.counterparts(side, id), uses = this.usesOf(side, id);
    const inputs = node.inputs.map((input) => (input ? [this.chip(side, input[0]), this.node(side, input[0]).types[input[1]] || "", make("br")] : ["left out", make("br")]));
    return make("div", {}, make("h3", {}, `${node.op}  ${node.name}`, make("span", { class: "soft" }, "  " + side)),
      make("div", { class: "columns" },
        facts([["outputs", node.types.join(", ")], node.attributes ? ["attributes", make("code", {}, node.attributes.trim())] : null, node.weight ? ["known before any input", "yes: folded once"] : null, inputs.length ? ["inputs", inputs] : null]),
        facts([[side === "before" ? "became" : "came from", this.chips(this.otherSide(side), other)],
          uses.length ? ["by", [...new Set(uses.map((use) => use.rule))].map((rule) => make("div", {}, rule))] : null, ...kernelFacts(this.report, side, id)])));
  }
  setDetails(sets) {
    return make("div", { class: "columns" }, facts([["before", this.chips("before", sets.before)]]), facts([["after", this.chips("after", sets.after)]]));
  }
}

// The kernels of the plan that compute a node.
function kernelFacts(report, side, id) {
  const plan = report.plans[side];
  if (!plan) return [];
  const kernels = plan.kernels.filter((kernel) => kernel.nodes.includes(id));
  return kernels.length ? [["computed by", kernels.map((kernel) => make("div", {}, `${kernel.name}, ${milliseconds(kernel.estimated_ms)}` + (kernel.nodes.length > 1 ? `, with ${plural(kernel.nodes.length - 1, "other")}` : "")))]] : [];
}

// Nodes of both graphs by a part of their name or operator.
function searchBox(graphs) {
  const kMost = 60, hits = make("ul", { hidden: true });
  const find = (text) => ["before", "after"].flatMap((side) => graphs.graphs[side].nodes.map((node, id) => ({ side, id, node }))
    .filter(({ node }) => !node.weight && (node.op + " " + node.name).toLowerCase().includes(text)));
  const show = () => {
    const text = box.value.trim().toLowerCase(), found = text ? find(text) : [];
    const choose = (hit) => { hits.hidden = true; graphs.pick(hit.side, hit.id, true); };
    hits.replaceChildren(...found.slice(0, kMost).map((hit) => make("li", { onmousedown: (event) => { event.preventDefault(); choose(hit); } },
      make("span", { class: "soft" }, hit.side + "  "), make("b", {}, hit.node.op), "  " + hit.node.name)),
      ...(found.length > kMost ? [make("li", { class: "soft" }, `and ${found.length - kMost} more`)] : []), ...(text && !found.length ? [make("li", { class: "soft" }, "no node of that name")] : []));
    hits.hidden = !text;
    return found;
  };
  const box = make("input", { type: "search", id: "search", placeholder: "find a node by name or operator", size: 34, oninput: show, onfocus: show, onblur: () => { hits.hidden = true; },
    onkeydown: (event) => {
      const found = event.key === "Enter" ? show() : [];
      if (found.length) { hits.hidden = true; graphs.pick(found[0].side, found[0].id, true); }
    } });
  return make("div", { class: "hits" }, box, hits);
}
