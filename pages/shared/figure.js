// Under a figure: the figure as SVG or PNG, drawn anew by Plotly itself on white with a font that every program has, and its numbers as CSV.
const FONT = { family: "Arial, Helvetica, sans-serif", color: "#23262a" };

function saved(name, url) {
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url));
}

// On paper a figure shrinks with its words to the width that there is; on the screen its size is Plotly's own.
function fitted(toPaper) {
  for (const box of document.querySelectorAll(".js-plotly-plot .svg-container"))
    for (const layer of box.querySelectorAll(".main-svg")) {
      const [width, height] = [layer.getAttribute("width"), layer.getAttribute("height")];
      box.style.aspectRatio = toPaper ? `${width} / ${height}` : "";
      box.style.maxWidth = toPaper ? `min(100%, ${width}px)` : "";
      toPaper ? layer.setAttribute("viewBox", `0 0 ${width} ${height}`) : layer.removeAttribute("viewBox");
    }
}
addEventListener("beforeprint", () => fitted(true));
addEventListener("afterprint", () => fitted(false));

// A figure that scrolls in its place, on a phone, is reached by Tab, so that it scrolls by keys.
const fits = new ResizeObserver((places) => {
  for (const { target } of places) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});

export default function ({ data, parentElement }) {
  const place = document.querySelector(`.st-key-${CSS.escape(data.key)}`);
  if (place) fits.observe(place); // again and again is once
  const drawn = (format) => {
    const figure = document.querySelector(`.st-key-${CSS.escape(data.key)} .js-plotly-plot`);
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
