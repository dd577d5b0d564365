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

// On a phone a row's name stands above its mark, and its numbers below: beside them an interval would have no room.
const NARROW = 520, WORDS_PIXELS = 26;
function stack(figure) {
  if (figure.clientWidth > NARROW) return;
  const { layout } = figure;
  const said = (layout.annotations ?? []).filter(({ name }) => name === "beside");
  const draw = (change) => window.Plotly.react(figure, figure.data, { ...layout, ...change }); // not `relayout`, which Streamlit hears and takes back
  if (!said.length) {
    const height = Number(figure.dataset.height); // Streamlit keeps the words, and not the height
    if (height && layout.height !== height) draw({ height });
    return;
  }
  const at = { name: "stacked", x: 0, xshift: 0 };
  const names = layout.yaxis.ticktext.map((text, y) => (
    { ...said[0], ...at, y, text: text.replaceAll("<br>", " "), yanchor: "bottom", yshift: 7 }
  ));
  const words = said.map((one) => ({ ...one, ...at, yanchor: "top", yshift: -7 }));
  const height = layout.height + WORDS_PIXELS * said.length;
  figure.dataset.height = height;
  draw({
    annotations: [...names, ...words],
    yaxis: { ...layout.yaxis, ticktext: names.map(() => "") }, // not switched off: Plotly would look for the extent of no label
    margin: { ...layout.margin, r: 16 },
    height,
  });
}
function stackOnceDrawn(place, tries = 100) {
  const figure = place.querySelector(".js-plotly-plot");
  if (!figure?._fullLayout) {
    if (tries) setTimeout(stackOnceDrawn, 50, place, tries - 1);
  } else if (!figure.dataset.heard) {
    figure.dataset.heard = "yes";
    figure.on("plotly_afterplot", () => stack(figure)); // drawn anew it has its names at the side again
    stack(figure);
  }
}

export default function ({ data, parentElement }) {
  const place = document.querySelector(`.st-key-${CSS.escape(data.key)}`);
  if (place) {
    fits.observe(place); // again and again is once
    if (innerWidth < 700) stackOnceDrawn(place);
  }
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
