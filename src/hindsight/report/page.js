const report = JSON.parse(document.getElementById("report").textContent);
const charts = JSON.parse(document.getElementById("charts").textContent);
function draw(id, scale) {
  const chart = charts[id], spec = JSON.parse(JSON.stringify(chart[scale]));
  spec.datasets = Object.fromEntries(chart.data.map(name => [name, report.datasets[name]]));
  return vegaEmbed("#" + id, spec, EMBEDDING);
}
for (const button of document.querySelectorAll("button[data-chart]")) {
  button.addEventListener("click", () => {
    const next = button.dataset.scale === "linear" ? "log" : "linear";
    draw(button.dataset.chart, next);
    button.textContent = (button.dataset.scale = next) === "linear" ? "logarithmic axes" : "linear axes";
  });
}
Promise.all(Object.keys(charts).map(id => draw(id, "linear"))).then(() => { document.body.dataset.drawn = "yes"; });
