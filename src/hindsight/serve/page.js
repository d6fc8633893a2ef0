"use strict";
const at = id => document.getElementById(id);
function put(id, text) { const node = at(id); if (node && node.textContent !== text) node.textContent = text; }
function num(v) {  // as `number` in page.py
  const size = Math.abs(v);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return v.toExponential(1).replace(/\.?0*e\+?/, "e");
  return v.toLocaleString("en", {maximumSignificantDigits: 2});
}
function fill(id, rows) {
  const body = at(id); body.replaceChildren();
  for (const row of rows) {
    const line = document.createElement("tr");
    for (const [text, kind] of row) {
      const cell = document.createElement("td");
      cell.textContent = text; cell.className = kind; line.append(cell);
    }
    body.append(line);
  }
}
const SVG = "http://www.w3.org/2000/svg";
function add(svg, name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  svg.append(node);
  return node;
}
function key(series) {
  at("key").replaceChildren(...series.map(([name, what]) => {
    const item = document.createElement("span"), mark = document.createElement("b");
    mark.className = name; item.append(mark, what); return item;
  }));
}
function draw(all) {  // each series is [name, what it is, whether its points are all there is, [[row, value], ...]]
  const svg = at("chart"), W = Math.max(300, svg.clientWidth), H = 300, B = 26, T = 8, R = 12;
  svg.replaceChildren(); svg.setAttribute("viewBox", "0 0 " + W + " " + H);
  const series = all.filter(s => s[3].length > 1), points = series.flatMap(s => s[3]);
  key(series);
  if (!points.length) { add(svg, "text", {x: R, y: H / 2}, "too few rows to draw"); return; }
  const log = Math.log10, xs = points.map(p => log(p[0])), x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 0.3);
  const main = series.filter(s => s[0] !== "bound"), ys = (main.length ? main : series).flatMap(s => s[3]).map(p => log(p[1]));
  let y0 = Math.min(...ys), y1 = Math.max(...ys);
  for (const s of series) y1 = Math.max(y1, Math.min(log(s[3][s[3].length - 1][1]), y1 + 1));  // most of the bound is far above
  const pad = Math.max(0.05, 0.06 * (y1 - y0)); y0 -= pad; y1 += pad;
  const marks = [0, 1, 2, 3, 4].map(k => 10 ** (y0 + (y1 - y0) * (0.04 + 0.23 * k)));
  const L = 10 + Math.max(...marks.map(v => add(svg, "text", {x: 0, y: 0}, num(v)).getBBox().width));
  svg.replaceChildren();
  const X = v => L + (W - L - R) * (log(v) - x0) / (x1 - x0);
  const Y = v => Math.max(T, Math.min(H - B, T + (H - B - T) * (y1 - log(v)) / (y1 - y0)));
  for (let k = Math.floor(x0); k <= x1; k++)
    for (const step of x1 - x0 > 2 ? [1] : [1, 2, 5]) {
      const v = step * 10 ** k;
      if (log(v) >= x0 && log(v) <= x1)
        add(svg, "text", {x: X(v), y: H - 8, "text-anchor": X(v) > W - 40 ? "end" : "middle"}, v.toLocaleString("en"));
    }
  for (const v of marks) {
    add(svg, "line", {x1: L, x2: W - R, y1: Y(v), y2: Y(v), class: "grid"});
    add(svg, "text", {x: L - 6, y: Y(v) + 4, "text-anchor": "end"}, num(v));
  }
  for (const [name, , dotted, pairs] of series) {
    if (dotted) for (const p of pairs) add(svg, "circle", {cx: X(p[0]), cy: Y(p[1]), r: 3, class: name});
    const drawn = pairs.map(p => X(p[0]).toFixed(1) + "," + Y(p[1]).toFixed(1)).join(" ");
    add(svg, "polyline", {points: drawn, class: name, fill: "none", "stroke-width": 2});
  }
}
function show(page) {
  for (const id in page.texts) put(id, page.texts[id]);
  fill("top", page.top); fill("mistakes", page.mistakes); draw(page.series);
}
const source = new EventSource("/events");
source.addEventListener("summary", event => { show(JSON.parse(event.data).page); put("state", "live"); });
source.onerror = () => put("state", "the connection was lost; trying again");
