// One graph, drawn: pan, zoom, an overview at its side. What is picked or hovered is told to `listener`, which answers by
// mark(): it alone knows both graphs.

// Nodes and edges that are shown. A graph's outputs are drawn as nodes of their own, numbered after its nodes.
function shownParts(graph, withWeights) {
  const items = [], place = new Map(), edges = [];
  graph.nodes.forEach((node, id) => {
    if (node.weight && !withWeights) return;
    place.set(id, items.length);
    items.push({ id, op: node.op, kind: node.kind, weight: node.weight, name: node.name, type: typeText(node.types) });
    const from = new Set(node.inputs.filter((input) => input && place.has(input[0])).map((input) => place.get(input[0])));
    for (const input of from) edges.push([input, items.length - 1]);
  });
  graph.outputs.forEach((output, k) => {
    if (!output.value || !place.has(output.value[0])) return;
    edges.push([place.get(output.value[0]), items.length]);
    items.push({ id: null, output: k, op: "output", kind: "output", name: output.name, type: "" });
  });
  return { items, edges };
}
const typeText = (types) => (types.length ? types[0] : "") + (types.length > 1 ? " +" + (types.length - 1) : "");
const kNameLength = 32;
const widthOf = (item) => Math.max(74, 18 + Math.max(item.op.length * 7.9 + (item.type ? 10 + Math.min(item.type.length, 30) * 6.5 : 0), tailOf(item.name, kNameLength).length * 6.3));

function drawnNode(item, x, y, width, height, attributes) {
  return draw("g", { class: "node " + item.kind + (item.weight ? " weight" : "") + (item.changed ? " changed" : ""),
    transform: `translate(${(x - width / 2).toFixed(1)},${y})`, ...attributes },
    draw("rect", { width: width.toFixed(1), height, rx: 6 }),
    draw("text", { class: "op", x: 9, y: 15.5 }, item.op),
    draw("text", { class: "type", x: (width - 9).toFixed(1), y: 15.5, "text-anchor": "end" }, tailOf(item.type, 30)),
    draw("text", { class: "name", x: 9, y: 30 }, tailOf(item.name, kNameLength)));
}

// A small graph that stands still: a side of a rule.
function stillGraph(graph) {
  const { items, edges } = shownParts(graph, true), widths = items.map(widthOf), drawing = layered(widths, edges);
  return draw("svg", { viewBox: `-4 -4 ${(drawing.width + 8).toFixed(1)} ${drawing.height + 8}`, width: (drawing.width + 8).toFixed(0), height: drawing.height + 8 },
    edges.map((edge, k) => draw("path", { class: "edge", d: pathOf(drawing.routes[k], drawing.nodeHeight) })),
    items.map((item, k) => drawnNode(item, drawing.x[k], drawing.y[k], widths[k], drawing.nodeHeight, {})));
}

class GraphView {
  constructor(side, graph, changed, listener) {
    Object.assign(this, { side, graph, changed, listener, scale: 1, left: 0, top: 0, marked: new Set() });
    this.scene = draw("g");
    this.svg = draw("svg", { class: "graph", id: "graph-" + side }, this.scene);
    this.overview = draw("svg", { class: "overview", preserveAspectRatio: "none" });
    const button = (text, title, action) => make("button", { title, onclick: action }, text);
    this.title = make("b");
    this.element = make("div", { class: "pane" },
      make("div", { class: "head" }, this.title, button("−", "smaller", () => this.zoom(1 / 1.3)), button("+", "larger", () => this.zoom(1.3)),
        button("fit", "the whole graph", () => this.fit())),
      make("div", { class: "canvas" }, this.svg, this.overview));
    this.listen();
    this.show(false);
  }

  show(withWeights) {
    const { items, edges } = shownParts(this.graph, withWeights);
    for (const item of items) item.changed = item.id !== null && this.changed.has(item.id);
    const widths = items.map(widthOf);
    Object.assign(this, { items, edges, widths, drawing: layered(widths, edges) });
    this.placeOf = new Map(items.map((item, place) => [item.id, place]).filter(([id]) => id !== null));
    this.lines = edges.map((edge, k) => draw("path", { class: "edge", d: pathOf(this.drawing.routes[k], this.drawing.nodeHeight) }));
    this.boxes = items.map((item, k) => this.box(item, k));
    this.scene.replaceChildren(...this.lines, ...this.boxes);
    const count = items.filter((item) => item.id !== null && item.kind !== "input" && !item.weight).length;
    this.title.textContent = `${this.side}: ${plural(count, "operator")}`;
    this.drawOverview();
  }
  box(item, k) {
    const listeners = item.id === null ? {} : {
      onclick: () => { if (!this.moved) this.listener.pick(this.side, item.id); },
      onmouseenter: () => this.listener.hover(this.side, item.id), onmouseleave: () => this.listener.hover(this.side, null),
    };
    const attributes = { "data-node": item.id, "data-output": item.output, ...listeners };
    const box = drawnNode(item, this.drawing.x[k], this.drawing.y[k], this.widths[k], this.drawing.nodeHeight, attributes);
    box.append(draw("title", {}, `${item.op}  ${item.type}\n${item.name}`));
    return box;
  }

  // ---- what is marked ----

  // Nodes by id; `edgesOf`: the one whose edges are marked too.
  mark(kind, ids, edgesOf = null) {
    for (const box of this.scene.querySelectorAll(".node." + kind)) box.classList.remove(kind);
    for (const id of ids) if (this.placeOf.has(id)) this.boxes[this.placeOf.get(id)].classList.add(kind);
    if (kind === "hovered") return;
    if (kind === "picked")
      this.edges.forEach(([from, to], k) => this.lines[k].classList.toggle("linked", edgesOf !== null && (this.items[from].id === edgesOf || this.items[to].id === edgesOf)));
    if (kind === "linked") this.outlined(".linked", ids);
  }
  reveal(ids) {
    const places = [...ids].filter((id) => this.placeOf.has(id)).map((id) => this.placeOf.get(id));
    if (!places.length) return;
    const middle = (values) => (Math.min(...values) + Math.max(...values)) / 2, ys = places.map((k) => this.drawing.y[k]);
    const { width, height } = this.size(), far = (Math.max(...ys) - Math.min(...ys)) * this.scale > height * 0.8;
    const shown = far ? places.slice(0, 1) : places;  // the first of many that lie far apart
    this.scale = Math.max(this.scale, 0.75);
    this.left = middle(shown.map((k) => this.drawing.x[k])) - width / 2 / this.scale;
    this.top = middle(shown.map((k) => this.drawing.y[k])) + this.drawing.nodeHeight / 2 - height / 2 / this.scale;
    this.moveTo();
  }

  // ---- where one looks ----

  size() {
    const box = this.svg.getBoundingClientRect();
    return { width: box.width || 600, height: box.height || 500 };
  }
  moveTo() {
    const { width, height } = this.size(), margin = 60;
    const kept = (at, view, whole) => (whole + 2 * margin <= view ? (whole - view) / 2 : Math.min(Math.max(at, -margin), whole + margin - view));
    this.left = kept(this.left, width / this.scale, this.drawing.width);
    this.top = kept(this.top, height / this.scale, this.drawing.height);
    this.scene.setAttribute("transform", `scale(${this.scale}) translate(${-this.left},${-this.top})`);
    fill(this.window, { x: this.left, y: this.top, width: width / this.scale, height: height / this.scale }, []);
  }
  zoom(factor, x, y) {
    const { width, height } = this.size(), at = { x: x ?? width / 2, y: y ?? height / 2 };
    const scale = Math.min(3, Math.max(0.02, this.scale * factor));
    this.left += at.x / this.scale - at.x / scale;
    this.top += at.y / this.scale - at.y / scale;
    this.scale = scale;
    this.moveTo();
  }
  fit() {
    const { width, height } = this.size();
    this.scale = Math.min(1.2, width / (this.drawing.width + 30), height / (this.drawing.height + 30));
    this.moveTo();
  }
  // The whole where it can be read; else its beginning, or what is first of interest.
  begin(ids) {
    this.fit();
    if (this.scale >= 0.6) return;
    const { width } = this.size();
    this.scale = Math.min(1, Math.max(0.75, width / (this.drawing.width + 40)));
    Object.assign(this, { left: (this.drawing.x[0] ?? 0) - width / 2 / this.scale, top: -20 });
    this.moveTo();
    const first = [...ids].find((id) => this.placeOf.has(id));
    if (first !== undefined) this.reveal([first]);
  }

  listen() {
    let held = null;
    this.svg.addEventListener("pointerdown", (event) => {
      held = { x: event.clientX, y: event.clientY, left: this.left, top: this.top };
      this.moved = false;
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!held) return;
      const dx = event.clientX - held.x, dy = event.clientY - held.y;
      if (!this.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
      if (!this.moved) this.svg.setPointerCapture(event.pointerId);
      this.moved = true;
      this.svg.classList.add("held");
      Object.assign(this, { left: held.left - dx / this.scale, top: held.top - dy / this.scale });
      this.moveTo();
    });
    const release = () => { held = null; this.svg.classList.remove("held"); };
    this.svg.addEventListener("pointerup", release);
    this.svg.addEventListener("pointercancel", release);
    this.svg.addEventListener("wheel", (event) => this.turn(event), { passive: false });
    new ResizeObserver(() => this.moveTo()).observe(this.svg);
  }
  // The wheel moves the graph, and with Ctrl zooms; at an end the page goes on.
  turn(event) {
    const box = this.svg.getBoundingClientRect(), was = [this.left, this.top];
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * 0.002), event.clientX - box.left, event.clientY - box.top);
      return;
    }
    this.left += event.deltaX / this.scale;
    this.top += event.deltaY / this.scale;
    this.moveTo();
    if (was[0] !== this.left || was[1] !== this.top) event.preventDefault();
  }

  // ---- the overview ----

  outlines(places) {
    const height = Math.max(this.drawing.nodeHeight, this.drawing.height / 220);
    return places.map((k) => `M${(this.drawing.x[k] - this.widths[k] / 2).toFixed(0)},${this.drawing.y[k]}h${this.widths[k].toFixed(0)}v${height.toFixed(0)}h${-this.widths[k].toFixed(0)}z`).join("");
  }
  outlined(selector, ids) {
    this.overview.querySelector(selector).setAttribute("d", this.outlines([...ids].filter((id) => this.placeOf.has(id)).map((id) => this.placeOf.get(id))));
  }
  drawOverview() {
    const { width, height } = this.drawing;
    this.overview.setAttribute("viewBox", `-60 -60 ${width + 120} ${height + 120}`);
    this.window = draw("rect", { class: "view" });
    this.overview.replaceChildren(draw("path", { class: "all", d: this.outlines(this.items.map((item, k) => k)) }), draw("path", { class: "changed" }),
      draw("path", { class: "linked" }), this.window);
    this.outlined(".changed", this.changed);
    const look = (event) => {
      if (event.buttons !== 1) return;
      const box = this.overview.getBoundingClientRect(), view = this.size();
      this.left = ((event.clientX - box.left) / box.width) * (width + 120) - 60 - view.width / 2 / this.scale;
      this.top = ((event.clientY - box.top) / box.height) * (height + 120) - 60 - view.height / 2 / this.scale;
      this.moveTo();
    };
    this.overview.onpointerdown = this.overview.onpointermove = look;
    this.moveTo();
  }
}
