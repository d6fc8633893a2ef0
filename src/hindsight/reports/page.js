const report = JSON.parse(document.getElementById("report").textContent);
const charts = JSON.parse(document.getElementById("charts").textContent);
function draw(id, scale, choice = 0) {
  const chart = charts[id], spec = JSON.parse(JSON.stringify(chart[scale]));
  spec.datasets = Object.fromEntries(
    chart.data.map(name => [name, report.datasets[name] ?? report.datasets[`${name}/${choice}`]]));
  return vegaEmbed("#" + id, spec, EMBEDDING);
}
for (const button of document.querySelectorAll("button[data-chart]")) {
  button.addEventListener("click", () => {
    const next = button.dataset.scale === "linear" ? "log" : "linear";
    draw(button.dataset.chart, next);
    button.textContent = (button.dataset.scale = next) === "linear" ? "logarithmic axes" : "linear axes";
  });
}
for (const select of document.querySelectorAll("select[data-charts]")) {
  select.selectedIndex = 0;
  select.addEventListener("change", () => {
    for (const id of select.dataset.charts.split(" ")) draw(id, "linear", select.value);
  });
}
Promise.all(Object.keys(charts).map(id => draw(id, "linear"))).then(() => { document.body.dataset.drawn = "yes"; });
