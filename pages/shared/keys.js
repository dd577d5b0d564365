// What Streamlit's buttons cannot do by key: show the map of keys (?), put the cursor into a field (n, -), hear a second key for a button (arrows,
// Enter) and the letter C, select words of the response by arrows, keep the row in hand in view, and say to a screen reader what has just happened. It sends
// nothing but the row that was clicked, the words that are to be quoted (R), and answers to criteria, which are drawn before the server has them.
const instances = new WeakMap();
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

const NOTE = "[class*='st-key-note_'] input, [class*='st-key-rationale_'] textarea";
const TEXTS = ".or-response .or-verbatim, .or-response .or-formatted";
const NO_LETTER = /[\s*_~`#>|\-+=[\]()<\\:]/g; // as in quoting.py

// What of the response is selected, how many letters stand before it, and the row in hand.
function selected() {
  const selection = getSelection(), range = selection.rangeCount ? selection.getRangeAt(0).cloneRange() : document.createRange();
  const row = document.querySelector(".or-row.or-current")?.dataset.orRow;
  const text = [...document.querySelectorAll(TEXTS)].find((one) => one.checkVisibility() && range.intersectsNode(one));
  const before = document.createRange();
  if (text) {
    before.selectNodeContents(text);
    if (range.compareBoundaryPoints(Range.START_TO_START, before) < 0) range.setStart(text, 0);
    if (range.compareBoundaryPoints(Range.END_TO_END, before) > 0) range.setEnd(text, text.childNodes.length);
    before.setEnd(range.startContainer, range.startOffset);
  }
  const quoted = { words: text ? String(range) : "", n_before: [...String(before).replace(NO_LETTER, "")].length, formatted: !!text?.matches(".or-formatted") };
  return { row: row === undefined ? null : Number(row), quoted };
}

// In a response that Tab has reached, arrows select the next word, the one before, or one of the next line; with Shift the selection grows.
function selectWords({ key, shiftKey }, response) {
  const selection = getSelection();
  if (!response.contains(selection.focusNode)) selection.collapse([...response.querySelectorAll(TEXTS)].find((one) => one.checkVisibility()), 0);
  const isFromRight = getComputedStyle(selection.focusNode.parentElement).direction === "rtl";
  const by = key === "ArrowUp" || key === "ArrowDown" ? "line" : "word";
  const way = key === "ArrowDown" || key === (isFromRight ? "ArrowLeft" : "ArrowRight") ? "forward" : "backward";
  if (shiftKey) selection.modify("extend", way, by);
  else {
    if (way === "forward") selection.collapseToEnd();
    else selection.collapseToStart();
    if (way === "backward" || by === "line") selection.modify("move", way, by);
    if (by === "line") for (const to of ["forward", "backward"]) selection.modify("move", to, "word"); // to where a word begins
    selection.modify("extend", "forward", "word");
  }
  selection.focusNode.parentElement?.scrollIntoView({ block: "nearest" });
}

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

// A list without buttons is reached by Tab, so that it scrolls by keys.
function keepReachable() {
  const list = document.querySelector(".st-key-rows");
  if (list?.querySelector("button")) list.removeAttribute("tabindex");
  else if (list) list.tabIndex = 0;
}

function keepInView() {
  keepReachable();
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

// ---- Answers to criteria: drawn at once, as pending, and kept here until the server has them, so that of presses which are faster than it none is lost or
// falls on another row than the one that was in hand on the screen.

const PATIENT_MS = 4000; // longer than that, the reader is told that an answer is not stored yet, and it is sent again
const rowAt = (place) => document.querySelector(`.or-row[data-or-row="${place}"]`);
const waits = (row) => !!row.querySelector(".or-mark .or-open");

function takeInHand(row) {
  if (!row || row.matches(".or-current")) return;
  const before = document.querySelector(".or-row.or-current");
  before?.classList.remove("or-current");
  before?.removeAttribute("aria-current");
  row.classList.add("or-current");
  row.setAttribute("aria-current", "true");
}

function drawPending({ n, row: place, label, words, why, asks }) {
  const row = rowAt(place), mark = row?.querySelector(".or-mark");
  if (!mark || Number(row.dataset.orPress ?? 0) >= n) return; // drawn
  row.orBefore ??= mark.innerHTML;
  row.dataset.orPress = n;
  row.classList.add("or-pending");
  const shown = mark.firstElementChild;
  if (label) [shown.className, shown.textContent] = [`or-label or-${label}`, words];
  mark.querySelectorAll("small.or-open, small.or-reason").forEach((one) => one.remove());
  if (!why && !asks) return;
  const more = document.createElement("small");
  [more.className, more.textContent] = asks ? ["or-open", "reason?"] : ["or-reason", why];
  mark.append(more);
}

function drawQueue({ presses }) {
  for (const press of presses) if (press.label || press.why) drawPending(press);
  if (presses.length) takeInHand(rowAt(presses.at(-1).to));
}

// The key is an answer, the reason for one, or a move: it is drawn, and sent with those that still wait. Returns whether it was any of these.
function answered(event, instance) {
  const row = document.querySelector(".or-row.or-current"), { of, answers, reasons } = instance.answering ?? {};
  if (!of || !row) return false;
  const key = { ArrowDown: "J", ArrowUp: "K" }[event.key] ?? event.key.toUpperCase();
  const rows = [...document.querySelectorAll(".or-row[data-or-row]")], at = rows.indexOf(row);
  const isReason = reasons[key] && row.querySelector(".or-mark > .or-cannot_assess:first-child");
  if (!answers[key] && !isReason && key !== "J" && key !== "K") return false;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (event.repeat && key !== "J" && key !== "K") return true;
  const press = { n: ++instance.n, key, row: Number(row.dataset.orRow), at: performance.now() };
  if (answers[key]) Object.assign(press, answers[key]);
  if (isReason) press.why = reasons[key];
  if (press.label || press.why) drawPending(press);
  const others = [...rows.slice(at + 1), ...rows.slice(0, at)];
  const next = key === "J" ? rows[at + 1] : key === "K" ? rows[at - 1] : press.asks ? row : others.find(waits);
  takeInHand(next);
  press.to = Number((next ?? row).dataset.orRow);
  instance.presses.push(press);
  sendPresses(instance);
  keepInView();
  return true;
}

function sendPresses({ answering, presses, setState }) {
  setState("pressed", { of: answering.of, presses: presses.map(({ n, key, row, to }) => ({ n, key, row, to })) });
}

// What the server has done leaves the queue. Where it refused an answer its list is as it was, and is not drawn again: the answer is taken off here.
function acknowledge(instance, answering) {
  if (answering?.of !== instance.answering?.of) [instance.presses, instance.n] = [[], 0];
  instance.answering = answering;
  if (!answering) return;
  instance.n = Math.max(instance.n, answering.done);
  instance.presses = instance.presses.filter(({ n }) => n > answering.done);
  drawQueue(instance);
  if (!instance.presses.length) takeInHand(rowAt(answering.at));
  setTimeout(() => {
    for (const row of document.querySelectorAll(".or-row.or-pending")) {
      if (Number(row.dataset.orPress) > answering.done) continue;
      row.querySelector(".or-mark").innerHTML = row.orBefore;
      row.classList.remove("or-pending", "or-unsent");
      delete row.dataset.orPress;
      delete row.orBefore;
    }
  }, 500);
}

function remind(instance) {
  const late = instance.presses.filter(({ at }) => performance.now() - at > PATIENT_MS);
  for (const { row } of late) document.querySelector(`.or-pending[data-or-row="${row}"]`)?.classList.add("or-unsent");
  if (late.length) sendPresses(instance);
}

export default function ({ data, parentElement, setTriggerValue, setStateValue }) {
  const map = parentElement.querySelector("dialog");
  const live = parentElement.querySelector("[role=status]");
  let instance = instances.get(parentElement);
  if (!instance) {
    instance = { presses: [], n: 0 };
    instances.set(parentElement, instance);
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
      } else if (!event.shiftKey && !at.matches?.(".or-response") && answered(event, instance)) {
        return;
      } else if (event.key.startsWith("Arrow") && (event.shiftKey || at.matches?.(".or-response"))) {
        event.stopImmediatePropagation();
        if (!at.matches?.(".or-response")) return; // the browser's own selection grows
        event.preventDefault();
        selectWords(event, at);
      } else if (BUTTONS[event.key] || BUTTONS[event.key.toUpperCase()]) {
        const button = document.querySelector(BUTTONS[event.key] ?? BUTTONS[event.key.toUpperCase()]);
        if (!button) return;
        event.preventDefault();
        event.stopImmediatePropagation(); // C is Streamlit's own: it opens what empties the cache
        button.click();
      } else if (event.key === "Escape" && map.open) {
        map.close();
      } else if (event.key === "n" || event.key === "N") {
        const note = document.querySelector(NOTE);
        if (note && !note.disabled) {
          event.preventDefault();
          note.focus();
        }
      } else if ((event.key === "r" || event.key === "R") && document.querySelector(".or-quote")) {
        event.preventDefault();
        event.stopImmediatePropagation(); // R is Streamlit's own too
        if (!event.repeat) instance.send("heard", selected());
      }
    };
    instance.onDown = (event) => {
      const at = event.composedPath()[0];
      if (at.closest?.("[data-or-keys], .or-quote")) event.preventDefault(); // who types keeps the cursor, and what is selected stays
    };
    instance.onPoint = (event) => {
      if (event.composedPath()[0].closest?.(".or-quote")) instance.pointed = selected(); // a finger's tap takes the selection away
    };
    instance.onClick = (event) => {
      if (event.composedPath()[0].closest?.("[data-or-keys]")) {
        const at = document.activeElement;
        map.open ? map.close() : map.show();
        if (isTyping(at)) at.focus();
      }
      if (event.composedPath()[0].closest?.(BUTTONS["-"])) writeSoon();
      if (event.composedPath()[0].closest?.(".or-quote")) {
        if (isTyping(document.activeElement)) document.activeElement.blur(); // what is typed is saved before
        instance.send("heard", instance.pointed ?? selected());
        instance.pointed = undefined;
      }
      const row = event.composedPath()[0].closest?.(".or-row[data-or-row]");
      // a click is no Tab: arrows go on from row to row, and no ring is drawn round the whole page
      document.querySelector("[data-testid=stMain]:focus, .or-response:focus")?.blur();
      if (row && !String(getSelection())) instance.send("heard", { row: Number(row.dataset.orRow) });
    };
    instance.onLeave = (event) => {
      if (instance.presses.length) event.preventDefault(); // the browser asks first: an answer is not stored yet
    };
    window.addEventListener("beforeunload", instance.onLeave);
    window.addEventListener("keydown", instance.onKey, true); // before Streamlit hears it
    document.addEventListener("mousedown", instance.onDown);
    document.addEventListener("pointerdown", instance.onPoint, true);
    document.addEventListener("click", instance.onClick);
    parentElement.querySelector(".close").onclick = () => map.close();
    instance.watch = new MutationObserver(() => {
      drawQueue(instance); // before it is painted
      requestAnimationFrame(keepInView);
    });
    instance.clock = setInterval(() => remind(instance), PATIENT_MS / 2);
    instance.watch.observe(document.querySelector(".st-key-rows") ?? document.body, { subtree: true, childList: true });
  }
  keepReachable();
  instance.send = setTriggerValue; // of the part of the page that stands now
  instance.setState = setStateValue;
  acknowledge(instance, data.answering);
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
    window.removeEventListener("beforeunload", instance.onLeave);
    window.removeEventListener("keydown", instance.onKey, true);
    document.removeEventListener("mousedown", instance.onDown);
    document.removeEventListener("pointerdown", instance.onPoint, true);
    document.removeEventListener("click", instance.onClick);
    instance.watch.disconnect();
    clearInterval(instance.clock);
    instances.delete(parentElement);
  };
}
