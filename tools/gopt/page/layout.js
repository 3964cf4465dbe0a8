// A layered drawing of a directed acyclic graph, from top to bottom. An edge that passes layers goes through a point in
// each; edges of one node share these points as long as they run together: its trunk.

// `widths`: of nodes, in topological order; `edges`: [from, to]. Returns the places of nodes (x: middle, y: top) and of
// each edge's points.
function layered(widths, edges, nodeHeight = 38, gap = 26) {
  const drawing = new Layers(widths, edges);
  drawing.order();
  const x = drawing.place();
  const y = drawing.layerOf.map((layer) => layer * (nodeHeight + gap));
  const routes = drawing.routes.map((route) => route.map((vertex) => ({ x: x[vertex], y: y[vertex], isNode: vertex < widths.length })));
  let left = Infinity, right = -Infinity;
  x.forEach((middle, vertex) => {
    left = Math.min(left, middle - drawing.widths[vertex] / 2);
    right = Math.max(right, middle + drawing.widths[vertex] / 2);
  });
  const count = widths.length;
  return { x: x.slice(0, count).map((at) => at - left), y: y.slice(0, count),
    routes: routes.map((route) => route.map((point) => ({ ...point, x: point.x - left }))),
    width: count ? right - left : 0, height: count ? (drawing.layers.length - 1) * (nodeHeight + gap) + nodeHeight : 0, nodeHeight };
}

class Layers {
  constructor(widths, edges) {
    this.widths = [...widths];
    this.layerOf = nodeLayers(widths.length, edges);
    this.above = widths.map(() => []);
    this.below = widths.map(() => []);
    this.routes = edges.map(() => []);
    this.addTrunks(edges);
    const last = this.layerOf.reduce((deepest, layer) => Math.max(deepest, layer), -1);
    this.layers = Array.from({ length: last + 1 }, () => []);
    this.layerOf.forEach((layer, vertex) => this.layers[layer].push(vertex));
  }

  addTrunks(edges) {
    const trunks = new Map();
    edges.forEach(([from, to], edge) => {
      if (!trunks.has(from)) trunks.set(from, [from]);
      const trunk = trunks.get(from), length = this.layerOf[to] - this.layerOf[from];
      while (trunk.length < length) trunk.push(this.addPoint(trunk[trunk.length - 1]));
      this.join(trunk[length - 1], to);
      this.routes[edge] = [...trunk.slice(0, length), to];
    });
  }
  addPoint(after) {
    const vertex = this.widths.length;
    this.widths.push(4);
    this.layerOf.push(this.layerOf[after] + 1);
    this.above.push([]);
    this.below.push([]);
    this.join(after, vertex);
    return vertex;
  }
  join(upper, lower) {
    this.below[upper].push(lower);
    this.above[lower].push(upper);
  }

  // Sweeps down and up: a vertex goes to the middle of those it is joined to. The order with the fewest crossings stays.
  order() {
    const position = new Float64Array(this.widths.length);
    const number = () => this.layers.forEach((layer) => layer.forEach((vertex, k) => { position[vertex] = k; }));
    number();
    let best = this.layers.map((layer) => [...layer]), fewest = this.crossings(position);
    for (let sweep = 0; sweep < 12 && fewest > 0; sweep++) {
      const down = sweep % 2 === 0, joined = down ? this.above : this.below;
      for (let k = 0; k < this.layers.length; k++) {
        const layer = this.layers[down ? k : this.layers.length - 1 - k];
        const wanted = new Map(layer.map((vertex) => [vertex, meanOf(joined[vertex], position, position[vertex])]));
        layer.sort((a, b) => wanted.get(a) - wanted.get(b) || position[a] - position[b]);
        layer.forEach((vertex, place) => { position[vertex] = place; });
      }
      const crossings = this.crossings(position);
      if (crossings >= fewest) continue;
      fewest = crossings;
      best = this.layers.map((layer) => [...layer]);
    }
    this.layers = best;
  }
  crossings(position) {
    let count = 0;
    for (const layer of this.layers) {
      const ends = layer.flatMap((vertex) => this.below[vertex].map((lower) => position[lower]).sort((a, b) => a - b));
      count += inversions(ends);
    }
    return count;
  }

  // Middles: each vertex as near as can be to those it is joined to, in the order of its layer, never overlapping.
  place() {
    const x = new Float64Array(this.widths.length);
    for (const layer of this.layers) this.spread(layer, x, () => 0, () => 1);
    const weight = (vertex, joined) => (joined.length === 0 ? 0.05 : this.isPoint(vertex) ? 4 : 1);
    for (let sweep = 0; sweep < 24; sweep++) {
      const down = sweep % 2 === 0, joined = down ? this.above : this.below;
      for (let k = 0; k < this.layers.length; k++)
        this.spread(this.layers[down ? k : this.layers.length - 1 - k], x, (vertex) => middleOf(joined[vertex], x, x[vertex]),
          (vertex) => weight(vertex, joined[vertex]));
    }
    return Array.from(x);
  }
  isPoint(vertex) { return this.widths[vertex] === 4; }

  // The least squares of what is wanted under an order: neighbours that are too close move together.
  spread(layer, x, wanted, weight) {
    const blocks = [];
    let offset = 0;
    layer.forEach((vertex, k) => {
      if (k) offset += (this.widths[layer[k - 1]] + this.widths[vertex]) / 2 + (this.isPoint(layer[k - 1]) && this.isPoint(vertex) ? 8 : 16);
      const w = weight(vertex);
      let block = { first: k, weight: w, sum: w * (wanted(vertex) - offset), offsets: [offset] };
      while (blocks.length && blocks[blocks.length - 1].sum / blocks[blocks.length - 1].weight >= block.sum / block.weight) {
        const before = blocks.pop();
        block = { first: before.first, weight: before.weight + block.weight, sum: before.sum + block.sum, offsets: before.offsets.concat(block.offsets) };
      }
      blocks.push(block);
    });
    for (const block of blocks) block.offsets.forEach((own, k) => { x[layer[block.first + k]] = block.sum / block.weight + own; });
  }
}

// The longest path from above; then what has one input at most goes down to just above the first that uses it, so that the
// long edge is its input's, which others share.
function nodeLayers(count, edges) {
  const layers = new Array(count).fill(0), first = new Array(count).fill(Infinity);
  const into = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) into[to].push(from);
  for (let node = 0; node < count; node++)
    for (const from of into[node]) layers[node] = Math.max(layers[node], layers[from] + 1);
  for (let node = count - 1; node >= 0; node--) {
    if (into[node].length <= 1 && first[node] < Infinity) layers[node] = first[node] - 1;
    for (const from of into[node]) first[from] = Math.min(first[from], layers[node]);
  }
  return layers;
}

function meanOf(vertices, position, otherwise) {
  return vertices.length ? vertices.reduce((sum, vertex) => sum + position[vertex], 0) / vertices.length : otherwise;
}
function middleOf(vertices, x, otherwise) {
  if (!vertices.length) return otherwise;
  const sorted = vertices.map((vertex) => x[vertex]).sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// Pairs in the wrong order, by merging.
function inversions(values) {
  let count = 0;
  const sort = (list) => {
    if (list.length < 2) return list;
    const left = sort(list.slice(0, list.length >> 1)), right = sort(list.slice(list.length >> 1)), merged = [];
    let l = 0, r = 0;
    while (l < left.length || r < right.length)
      if (r === right.length || (l < left.length && left[l] <= right[r])) merged.push(left[l++]);
      else { merged.push(right[r++]); count += left.length - l; }
    return merged;
  };
  sort(values);
  return count;
}

// A path through the points of a route, from the bottom of one node to the top of another.
function pathOf(route, nodeHeight) {
  let text = `M${route[0].x.toFixed(1)},${(route[0].y + nodeHeight).toFixed(1)}`;
  for (let k = 1; k < route.length; k++) {
    const from = route[k - 1], to = route[k], top = from.y + nodeHeight, half = (top + to.y) / 2;
    if (Math.abs(from.x - to.x) < 0.5) text += `L${to.x.toFixed(1)},${to.y.toFixed(1)}`;
    else text += `C${from.x.toFixed(1)},${half.toFixed(1)} ${to.x.toFixed(1)},${half.toFixed(1)} ${to.x.toFixed(1)},${to.y.toFixed(1)}`;
    if (!to.isNode) text += `L${to.x.toFixed(1)},${(to.y + nodeHeight).toFixed(1)}`;
  }
  return text;
}
