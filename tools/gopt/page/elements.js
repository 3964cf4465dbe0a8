// Elements are made, never parsed: what a model names is text, and nothing else.
const kSvg = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(3)) if (child !== null && child !== undefined) element.append(child);
  return element;
}
const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(kSvg, tag), attributes, children);
const byId = (id) => document.getElementById(id);

// ---- numbers as text ----

const isNumber = (x) => typeof x === "number" && Number.isFinite(x);
function digits(x, count = 4) {
  if (!isNumber(x)) return "not finite";
  if (x === 0) return "0";
  const size = Math.abs(x);
  return size >= 1e6 || size < 1e-3 ? x.toExponential(Math.min(count - 1, 2)) : String(Number(x.toPrecision(count)));
}
const milliseconds = (x) => digits(x) + " ms";
function scaled(x, step, units) {
  let unit = 0;
  for (; Math.abs(x) >= step && unit + 1 < units.length; unit++) x /= step;
  return digits(x, 3) + units[unit];
}
const byteText = (x) => scaled(x, 1024, [" B", " KiB", " MiB", " GiB"]);
const countText = (x) => scaled(x, 1000, ["", " k", " M", " G", " T"]);
const secondText = (x) => (x < 0.0995 ? digits(x * 1000, 2) + " ms" : digits(x, 3) + " s");
const percentText = (x) => (x * 100).toFixed(Math.abs(x) < 0.1 ? 1 : 0) + " %";
const plural = (count, one, many = one + "s") => count + " " + (count === 1 ? one : many);

// The end of a name says most: "…/layer1/conv1/Conv".
const tailOf = (text, length) => (text.length <= length ? text : "…" + text.slice(text.length - length + 1));

// ---- parts of a page ----

function table(columns, rows, total) {
  const cell = (tag, column, content) => make(tag, { class: column.number ? "number" : null }, content);
  const line = (row, attributes) => make("tr", attributes, columns.map((column, k) => cell("td", column, row[k])));
  return make("table", {},
    make("thead", {}, make("tr", {}, columns.map((column) => cell("th", column, column.title)))),
    make("tbody", {}, rows.map((row) => line(row.cells || row, row.attributes || {})), total ? line(total, { class: "total" }) : null));
}
const facts = (pairs) => make("dl", { class: "facts" },
  pairs.filter((pair) => pair).map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));

// Folds; `content` is made when it is first seen, so that a page of a large model opens at once.
function section(id, title, about, content, isOpen = true) {
  const body = make("div", { class: "body" });
  const part = make("details", { class: "section", id, open: isOpen },
    make("summary", {}, title, make("span", { class: "soft" }, about)), body);
  byId("sections").append(part);
  byId("contents").append(make("a", { href: "#" + id, onclick: () => { part.open = true; } }, title));
  const build = () => { if (part.open && !body.hasChildNodes()) body.append(...[content()].flat(3)); };
  part.addEventListener("toggle", build);
  build();
}

// One of several; `show` makes what is shown for the one chosen.
function chooser(names, show) {
  const place = make("div"), buttons = names.map((name) => make("button", { onclick: () => choose(name) }, name));
  const choose = (name) => {
    buttons.forEach((button, k) => button.classList.toggle("on", names[k] === name));
    place.replaceChildren(...[show(name)].flat(3));
  };
  choose(names[names.length - 1]);
  return [make("div", { class: "toolbar" }, names.length > 1 ? buttons : []), place];
}

const tip = {
  show(event, text) {
    const box = byId("tip");
    box.textContent = text;
    box.hidden = false;
    const right = event.clientX + 14 + box.offsetWidth > innerWidth, low = event.clientY + 14 + box.offsetHeight > innerHeight;
    box.style.left = Math.max(4, right ? event.clientX - box.offsetWidth - 10 : event.clientX + 14) + "px";
    box.style.top = Math.max(4, low ? event.clientY - box.offsetHeight - 10 : event.clientY + 14) + "px";
  },
  hide() { byId("tip").hidden = true; },
};
const withTip = (text) => ({ onmousemove: (event) => tip.show(event, text()), onmouseleave: tip.hide });
