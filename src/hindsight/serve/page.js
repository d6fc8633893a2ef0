"use strict";
const at = id => document.getElementById(id);
function put(id, text) { const node = at(id); if (node && node.textContent !== text) node.textContent = text; }
function num(v) {  // as `brief` in formatting.py, without zeros at the end
  const size = Math.abs(v);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return v.toExponential(2).replace(/\.?0*e\+?/, "e");
  return v.toLocaleString("en", size < 1e3 ? {maximumSignificantDigits: 3} : {maximumFractionDigits: 0});
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
function key(id, series) {
  at(id).replaceChildren(...series.filter(s => s[1]).map(([name, what]) => {
    const item = document.createElement("span"), mark = document.createElement("b");
    mark.className = name; item.append(mark, what); return item;
  }));
}
const LOG = {to: Math.log10, from: v => 10 ** v, least: 0.05}, PLAIN = {to: v => v, from: v => v, least: 0.005};
const PARTS = {...PLAIN, show: v => (100 * v).toFixed(1) + " %"};
function axis(svg, W, H, y0, y1, scale, marks = 5) {  // lines across, with their numbers; returns where the plot begins
  const text = v => (scale.show || num)(scale.from(v)), at = Array.from({length: marks}, (_, k) => y0 + (y1 - y0) * (0.04 + 0.92 * k / (marks - 1)));
  const L = 10 + Math.max(...at.map(v => add(svg, "text", {x: 0, y: 0}, text(v)).getBBox().width));
  svg.replaceChildren();
  for (const v of at) {
    const y = T + (H - B - T) * (y1 - v) / (y1 - y0);
    add(svg, "line", {x1: L, x2: W - R, y1: y, y2: y, class: "grid"});
    add(svg, "text", {x: L - 6, y: y + 4, "text-anchor": "end"}, text(v));
  }
  return L;
}
const B = 26, T = 8, R = 12;
function start(id, H) {
  const svg = at(id), W = Math.max(300, svg.clientWidth);
  svg.replaceChildren(); svg.setAttribute("viewBox", "0 0 " + W + " " + H);
  return [svg, W];
}
function draw(all, name = "", H = 300, scale = LOG) {
  // each series is [name, what it is, whether its points are all there is, [[row, value], ...]]
  const [svg, W] = start("chart" + name, H), log = Math.log10, {to, least} = scale;
  const series = all.filter(s => s[3].length > 1), points = series.flatMap(s => s[3]);
  key("key" + name, series);
  if (!points.length) { add(svg, "text", {x: R, y: H / 2}, "too few rows to draw"); return; }
  const xs = points.map(p => log(p[0])), x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 0.3);
  const main = series.filter(s => s[0] !== "bound"), ys = (main.length ? main : series).flatMap(s => s[3]).map(p => to(p[1]));
  let y0 = Math.min(...ys), y1 = Math.max(...ys);
  const ends = series.map(s => to(s[3][s[3].length - 1][1])), low = y0, high = y1;  // most of a bound is far away
  for (const end of ends) { y0 = Math.min(y0, Math.max(end, low - 1)); y1 = Math.max(y1, Math.min(end, high + 1)); }
  const pad = Math.max(least, 0.06 * (y1 - y0)); y0 -= pad; y1 += pad;
  const L = axis(svg, W, H, y0, y1, scale);
  const X = v => L + (W - L - R) * (log(v) - x0) / (x1 - x0);
  const Y = v => T + (H - B - T) * (y1 - to(v)) / (y1 - y0), fits = p => to(p[1]) >= y0 && to(p[1]) <= y1;
  for (let k = Math.floor(x0); k <= x1; k++)
    for (const step of x1 - x0 > 2 ? [1] : [1, 2, 5]) {
      const v = step * 10 ** k;
      if (log(v) >= x0 && log(v) <= x1)
        add(svg, "text", {x: X(v), y: H - 8, "text-anchor": X(v) > W - 40 ? "end" : "middle"}, v.toLocaleString("en"));
    }
  for (const [name, , dotted, all] of series) {
    const pairs = all.filter(fits);
    if (dotted) for (const p of pairs) add(svg, "circle", {cx: X(p[0]), cy: Y(p[1]), r: 3, class: name});
    const drawn = pairs.map(p => X(p[0]).toFixed(1) + "," + Y(p[1]).toFixed(1)).join(" ");
    add(svg, "polyline", {points: drawn, class: name, fill: "none", "stroke-width": 2});
  }
}
function ranges(rows) {  // each is [row, target, low, high], an end null where it is not finite
  const H = 180, [svg, W] = start("chart-ranges", H), all = rows.flatMap(r => r.slice(1)).filter(v => v !== null);
  let y0 = Math.min(...all), y1 = Math.max(...all), outside = 0;
  const pad = 0.06 * (y1 - y0) || 1; y0 -= pad; y1 += pad;
  const L = axis(svg, W, H, y0, y1, PLAIN, 4), Y = v => T + (H - B - T) * (y1 - v) / (y1 - y0);
  rows.forEach(([row, target, low, high], k) => {
    const x = L + (W - L - R) * (k + 0.5) / rows.length;
    const missed = (low !== null && target < low) || (high !== null && target > high), kind = missed ? "missed" : "own";
    outside += missed;
    add(svg, "line", {x1: x, x2: x, y1: Y(low === null ? y0 : low), y2: Y(high === null ? y1 : high), class: kind, "stroke-width": 2});
    add(svg, "circle", {cx: x, cy: Y(target), r: 3, class: kind});
  });
  add(svg, "text", {x: L, y: H - 8}, "row " + rows[0][0].toLocaleString("en"));
  add(svg, "text", {x: W - R, y: H - 8, "text-anchor": "end"}, rows[rows.length - 1][0].toLocaleString("en"));
  put("of-ranges", "the newest " + rows.length + " rows, dots, and the intervals made before they were learnt; outside, in red: " + outside);
}
function show(page) {
  at("intervals").hidden = !page.coverage.length;
  if (page.coverage.length) draw(page.coverage, "-coverage", 180, PARTS);
  if (page.ranges.length) ranges(page.ranges);
  for (const id in page.texts) put(id, page.texts[id]);
  fill("top", page.top); fill("mistakes", page.mistakes); draw(page.series);
}
const source = new EventSource("/events");
source.addEventListener("summary", event => { show(JSON.parse(event.data).page); put("state", "live"); });
source.onerror = () => put("state", "the connection was lost; trying again");
