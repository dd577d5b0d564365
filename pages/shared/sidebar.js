// On a narrow screen the sidebar leaves the room to the page: when Overread is opened, and once a page was chosen. By itself Streamlit sees to that
// on phones alone. Who opens it keeps it until then.
const NARROW = 1100;
let isHeard = false;

function makeRoom() {
  if (innerWidth < NARROW) document.querySelector("[data-testid=stSidebar][data-collapsed=false] [data-testid=stSidebarCollapseButton] button")?.click();
}

export default function () {
  if (isHeard) return;
  isHeard = true;
  makeRoom();
  document.addEventListener("click", ({ target }) => {
    if (target.closest?.("[data-testid=stSidebarNav] a")) setTimeout(makeRoom, 50); // Streamlit's own handler comes first
  });
}
