// Draws the figures of a report. On paper they are as wide as the page, so they are drawn anew before it is printed and after.
const drawn = JSON.parse(document.getElementById("figures").textContent);
const places = drawn.map((_, number) => document.getElementById(`figure-${number}`));
drawn.forEach((figure, number) => {
  Plotly.newPlot(places[number], figure.data, figure.layout, { displayModeBar: false, responsive: true });
});
const PAPER = 660; // pixels between the margins of an A4 page
const draw = (width) => places.forEach((place) => Plotly.relayout(place, { width, autosize: !width }));
window.addEventListener("beforeprint", () => draw(PAPER));
window.addEventListener("afterprint", () => draw(undefined));
