// What Streamlit's buttons cannot do by key: show the map of keys (?), put the cursor into a field (n, -), hear a second key for a button (arrows,
// Enter) and the letter C, keep the row in hand in view, say to a screen reader what has just happened, and close the sidebar where the screen is narrow. It sends nothing but the row that was clicked.
const instances = new WeakMap();
let hasMadeRoom = false;
const level = (letter) => `[class*='st-key-answer_${letter}_'] button, .st-key-settle_${letter} button`;
const BUTTONS = {
  ArrowUp: "[class*='st-key-back_'] button",
  ArrowDown: "[class*='st-key-next_'] button",
  Enter: "[class*='st-key-go_on_'] button",
  "-": "[class*='st-key-tell_lead_'] button",
  ...Object.fromEntries([..."ABCD"].map((letter) => [letter, level(letter)])),
};
// Enter presses what has the focus; and held down after Ctrl + Enter it asks for nothing.
const isOfFocus = (event, at) => event.key === "Enter" && (event.repeat || at.closest?.("button, a, summary, dialog, [role=button]"));
const LINE = "[class*='st-key-line_'] input"; // to the lead
const TYPED = "textarea, select, [role=combobox], input:not([type=checkbox], [type=radio], [type=range])";

function isTyping(at) {
  return at.isContentEditable || at.matches?.(TYPED);
}

// Streamlit takes every input for a field of text: a key on a switch or a box is heard as if it were pressed beside it, but for those it needs itself.
function isHeardBeside(event, at) {
  const isArrow = at.type === "checkbox" && event.key.startsWith("Arrow");
  return event.isTrusted && at.matches?.("input") && (isArrow || (event.key.length === 1 && event.key !== " "));
}

// What a press opens is drawn a moment later: the cursor goes into its field then.
function writeSoon(tries = 100) {
  const field = document.querySelector(LINE);
  if (field) field.focus();
  else if (tries) setTimeout(() => writeSoon(tries - 1), 30);
}

function keepInView() {
  const row = document.querySelector(".or-row.or-current");
  const list = row && row.closest(".st-key-rows");
  if (!row || !list) return;
  const outer = list.getBoundingClientRect(), { top } = row.getBoundingClientRect();
  const { bottom } = (list.querySelector(".st-key-answers") ?? row).getBoundingClientRect();
  if (top < outer.top) list.scrollTop -= outer.top - top + 8;
  else if (bottom > outer.bottom) {
    const most = row.querySelector(".or-decided") ? Infinity : top - outer.top; // first what the judge says, then what may be said of it
    list.scrollTop += Math.min(bottom - outer.bottom + 8, most);
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const map = parentElement.querySelector("dialog");
  const live = parentElement.querySelector("[role=status]");
  let instance = instances.get(parentElement);
  if (!instance) {
    instance = {};
    instances.set(parentElement, instance);
    if (innerWidth < 1100 && !hasMadeRoom) document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click(); // who opens it again keeps it
    hasMadeRoom = true;
    instance.onKey = (event) => {
      const at = event.composedPath()[0];
      if (event.isComposing || isOfFocus(event, at) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTyping(at)) {
        if (event.key === "Escape" || (event.key === "Enter" && at.closest("[class*='st-key-note_']"))) setTimeout(() => at.blur());
      } else if (isHeardBeside(event, at)) {
        event.preventDefault();
        event.stopImmediatePropagation();
        document.body.dispatchEvent(new KeyboardEvent(event.type, event));
      } else if (event.key === "?") {
        event.preventDefault();
        map.open ? map.close() : map.show();
      } else if (event.key === "-" && document.querySelector(LINE)) {
        event.preventDefault();
        writeSoon();
      } else if (BUTTONS[event.key] || BUTTONS[event.key.toUpperCase()]) {
        const button = document.querySelector(BUTTONS[event.key] ?? BUTTONS[event.key.toUpperCase()]);
        if (!button) return;
        event.preventDefault();
        event.stopImmediatePropagation(); // C is Streamlit's own: it opens what empties the cache
        button.click();
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
      if (event.composedPath()[0].closest?.(BUTTONS["-"])) writeSoon();
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
