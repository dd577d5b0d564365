// On a narrow screen the sidebar leaves the room to the page: when Overread is opened, and once a page was chosen. By itself Streamlit sees to that
// on phones alone. Who opens it keeps it until then. Tables are painted: the style sheet is told whether what is printed was drawn on slate, and a
// negative number, for which Streamlit paints a hyphen, gets its minus, so that a column of numbers need not be one of words, which sorts otherwise.
const NARROW = 1100;
const NEGATIVE = /^-(?=[\d.,]+$)/;
let isHeard = false;

function makeRoom() {
  if (innerWidth < NARROW) document.querySelector("[data-testid=stSidebar][data-collapsed=false] [data-testid=stSidebarCollapseButton] button")?.click();
}

export default function () {
  if (isHeard) return;
  isHeard = true;
  makeRoom();
  const paint = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (words, ...place) {
    paint.call(this, String(words).replace(NEGATIVE, "−"), ...place);
  };
  document.addEventListener("click", ({ target }) => {
    if (target.closest?.("[data-testid=stSidebarNav] a")) setTimeout(makeRoom, 50); // Streamlit's own handler comes first
  });
  addEventListener("beforeprint", () => {
    const app = document.querySelector("[data-testid=stApp]");
    document.body.classList.toggle("or-from-slate", getComputedStyle(app).colorScheme === "dark");
  });
}
