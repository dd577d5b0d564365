// Under a figure: the figure as SVG or PNG, drawn anew by Plotly itself on white with a font that every program has, and its numbers as CSV.
const FONT = { family: "Arial, Helvetica, sans-serif", color: "#23262a" };

function saved(name, url) {
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url));
}

export default function ({ data, parentElement }) {
  const wide = () => document.querySelector(`.st-key-${CSS.escape(data.key)} .js-plotly-plot`);
  const drawn = (format) => {
    const figure = wide();
    if (!figure) return;
    const layout = { ...figure.layout, font: { ...figure.layout.font, ...FONT }, paper_bgcolor: "#fff", plot_bgcolor: "#fff" };
    const { width, height } = figure.getBoundingClientRect();
    const size = { width: Math.round(width), height: Math.round(height), scale: format === "png" ? 3 : 1 };
    window.Plotly.downloadImage({ data: figure.data, layout, config: {} }, { format, filename: data.name, ...size });
  };
  const acts = {
    svg: () => drawn("svg"),
    png: () => drawn("png"),
    csv: () => saved(`${data.name}.csv`, URL.createObjectURL(new Blob([data.csv], { type: "text/csv;charset=utf-8" }))),
  };
  for (const button of parentElement.querySelectorAll("button")) {
    button.onclick = acts[button.name];
    button.setAttribute("aria-label", `${button.title}: ${data.alt}`);
  }
}
