// What Streamlit's buttons cannot do by key: show the map of keys (?), put the cursor into the note (n), keep the row in hand in view,
// and say to a screen reader what has just happened. It sends nothing but the row that was clicked.
const instances = new WeakMap();
const TYPED = "textarea, select, [role=combobox], input:not([type=checkbox], [type=radio], [type=range])";

function isTyping(at) {
  return at.isContentEditable || at.matches?.(TYPED);
}

// Streamlit takes every input for a field of text: a key on a switch or a box is heard as if it were pressed beside it, but for those it needs itself.
function isHeardBeside(event, at) {
  const isArrow = at.type === "checkbox" && event.key.startsWith("Arrow");
  return event.isTrusted && at.matches?.("input") && (isArrow || (event.key.length === 1 && event.key !== " "));
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
      const at = event.composedPath()[0];
      if (isTyping(at)) {
        if (event.key === "Escape" || (event.key === "Enter" && at.closest("[class*='st-key-note_']"))) setTimeout(() => at.blur());
      } else if (isHeardBeside(event, at)) {
        event.preventDefault();
        event.stopImmediatePropagation();
        document.body.dispatchEvent(new KeyboardEvent(event.type, event));
      } else if (event.key === "?") {
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
    instance.onDown = (event) => {
      if (event.composedPath()[0].closest?.("[data-or-keys]")) event.preventDefault(); // who types keeps the cursor
    };
    instance.onClick = (event) => {
      if (event.composedPath()[0].closest?.("[data-or-keys]")) {
        const at = document.activeElement;
        map.open ? map.close() : map.show();
        if (isTyping(at)) at.focus();
      }
      const row = event.composedPath()[0].closest?.(".or-row[data-or-row]");
      document.querySelector("[data-testid=stMain]:focus")?.blur(); // else the next key draws a ring round the whole page
      if (row && !String(getSelection())) instance.send("row", Number(row.dataset.orRow));
    };
    window.addEventListener("keydown", instance.onKey, true); // before Streamlit hears it
    document.addEventListener("mousedown", instance.onDown);
    document.addEventListener("click", instance.onClick);
    parentElement.querySelector(".close").onclick = () => map.close();
    instance.watch = new MutationObserver(() => requestAnimationFrame(keepInView));
    instance.watch.observe(document.querySelector(".st-key-rows") ?? document.body, { subtree: true, childList: true });
  }
  instance.arrows = data.arrows;
  instance.send = setTriggerValue; // of the part of the page that stands now
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
    window.removeEventListener("keydown", instance.onKey, true);
    document.removeEventListener("mousedown", instance.onDown);
    document.removeEventListener("click", instance.onClick);
    instance.watch.disconnect();
    instances.delete(parentElement);
  };
}
