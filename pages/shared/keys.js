// What Streamlit's buttons cannot do by key: show the map of keys (?), put the cursor into the note (n), keep the row in hand in view,
// and say to a screen reader what has just happened. It sends nothing but the row that was clicked.
const instances = new WeakMap();

function isTyping(event) {
  const at = event.composedPath()[0];
  return at && (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName));
}

function keepInView() {
  const row = document.querySelector(".or-row.or-current");
  const list = row && row.closest(".st-key-rows");
  if (!row || !list) return;
  const inner = row.getBoundingClientRect(), outer = list.getBoundingClientRect();
  if (inner.top < outer.top) list.scrollTop -= outer.top - inner.top + 8;
  else if (inner.bottom > outer.bottom) list.scrollTop += inner.bottom - outer.bottom + 8;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const map = parentElement.querySelector("dialog");
  const live = parentElement.querySelector("[role=status]");
  let instance = instances.get(parentElement);
  if (!instance) {
    instance = {};
    instances.set(parentElement, instance);
    instance.onKey = (event) => {
      if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTyping(event)) {
        const field = event.composedPath()[0];
        if (event.key === "Escape" || (event.key === "Enter" && field.closest("[class*='st-key-note_']"))) setTimeout(() => field.blur());
        return;
      }
      if (event.key === "?") {
        event.preventDefault();
        map.open ? map.close() : map.show();
      } else if (instance.arrows && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
        event.preventDefault();
        document.querySelector(`[class*='st-key-${event.key === "ArrowUp" ? "back" : "next"}_'] button`)?.click();
      } else if (event.key === "Escape" && map.open) {
        map.close();
      } else if (event.key === "n" || event.key === "N") {
        const note = document.querySelector("[class*='st-key-note_'] input, [class*='st-key-rationale_'] textarea");
        if (note && !note.disabled) {
          event.preventDefault();
          note.focus();
        }
      }
    };
    instance.onClick = (event) => {
      if (event.composedPath()[0].closest?.("[data-or-keys]")) map.open ? map.close() : map.show();
      const row = event.composedPath()[0].closest?.(".or-row[data-or-row]");
      if (row && !String(getSelection())) setTriggerValue("row", Number(row.dataset.orRow));
    };
    document.addEventListener("keydown", instance.onKey);
    document.addEventListener("click", instance.onClick);
    parentElement.querySelector(".close").onclick = () => map.close();
    instance.watch = new MutationObserver(() => requestAnimationFrame(keepInView));
    instance.watch.observe(document.querySelector(".st-key-rows") ?? document.body, { subtree: true, childList: true });
  }
  instance.arrows = data.arrows;
  const list = map.querySelector("dl");
  const wanted = JSON.stringify(data.keys);
  if (instance.drawn !== wanted) {
    instance.drawn = wanted;
    list.replaceChildren(
      ...data.keys.flatMap(([keys, act]) => {
        const term = document.createElement("dt"), meaning = document.createElement("dd");
        term.textContent = keys;
        meaning.textContent = act;
        return [term, meaning];
      }),
    );
  }
  if (live.textContent !== data.status) live.textContent = data.status;
  return () => {
    document.removeEventListener("keydown", instance.onKey);
    document.removeEventListener("click", instance.onClick);
    instance.watch.disconnect();
    instances.delete(parentElement);
  };
}
