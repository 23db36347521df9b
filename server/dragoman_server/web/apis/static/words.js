// The words of both sides: written with their marks, and lit up with what they come from.
//
// The text's words stand behind the field that one types in, letter under letter; only their marks are seen.
// Offsets of the API count code points; strings of this language count units of UTF-16.

import { $, make } from "./elements.js";
import { say } from "./strings.js";

const HINT = matchMedia("(pointer: coarse)").matches
  ? say("Tap a word to see what it comes from")
  : say("Point at a word to see what it comes from");

let links = [];
let sourceText = "";

const sides = {
  source: { place: () => $("marks"), other: "target" },
  target: { place: () => $("translation"), other: "source" },
};

/** A text in pieces: linked words, and what stands between them, cut at more points too. */
export function pieces(text, links, side, cuts = []) {
  const points = [...text];
  const bounds = new Map(links.map((link) => [link[`${side}Start`], link[`${side}End`]]));
  const made = [];
  let at = 0;
  const add = (start, end, isWord) => {
    const inside = isWord ? [] : cuts.filter((cut) => start < cut && cut < end).sort((a, b) => a - b);
    for (const until of [...inside, end]) {
      if (until > at) made.push({ text: points.slice(at, until).join(""), start: at, end: until, isWord });
      at = Math.max(at, until);
    }
  };
  for (const [start, end] of [...bounds].sort((a, b) => a[0] - b[0])) {
    if (start < at) continue;
    add(at, start, false);
    add(start, end, true);
  }
  add(at, points.length, false);
  return made;
}

function write(side, text, isWarned, cuts = [], unsure = []) {
  const nodes = pieces(text, links, side, cuts).map((piece) => {
    const node = make("span", { textContent: piece.text });
    node.classList.toggle("is-warned", isWarned(piece));
    const isUnsure = unsure.some((each) => each.targetStart <= piece.start && piece.end <= each.targetEnd);
    node.classList.toggle("is-unsure", isUnsure);
    if (piece.isWord) {
      node.classList.add("word");
      node.dataset.start = piece.start;
      node.dataset.end = piece.end;
      if (side === "target") node.tabIndex = -1;
    }
    return node;
  });
  sides[side].place().replaceChildren(...nodes);
}

/** Shows a translation, with the warnings' parts marked on both sides, and its sentences that are unsure. */
export function showWords(source, target, newLinks, warnings, unsure) {
  links = newLinks;
  sourceText = source;
  const touches = (start, end) => warnings.some((each) => each.start < end && start < each.end);
  const cuts = warnings.flatMap((each) => [each.start, each.end]);
  write("source", `${source}\n`, (piece) => touches(piece.start, piece.end), cuts);
  const warned = links.filter((link) => touches(link.sourceStart, link.sourceEnd)).map((link) => link.targetStart);
  const starts = new Set(warned);
  const bounds = unsure.flatMap((each) => [each.targetStart, each.targetEnd]);
  write("target", target, (piece) => piece.isWord && starts.has(piece.start), bounds, unsure);
  const first = $("translation").querySelector(".word");
  if (first) first.tabIndex = 0;
  lightUp(null);
}

/** Of a text that is not translated yet: nothing is marked. */
export function clearMarks(text) {
  links = [];
  $("marks").textContent = `${text}\n`;
  lightUp(null);
}

function linked(node, side) {
  const start = Number(node.dataset.start);
  const { other } = sides[side];
  return links
    .filter((link) => link[`${side}Start`] === start)
    .sort((a, b) => b.weight - a.weight)
    .map((link) => ({
      link,
      node: sides[other].place().querySelector(`.word[data-start="${link[`${other}Start`]}"]`),
    }))
    .filter((found) => found.node);
}

/** Lights up a word and those on the other side that it is linked with; null puts them out. */
export function lightUp(node, side) {
  for (const each of document.querySelectorAll(".is-lit, .is-here")) each.classList.remove("is-lit", "is-here");
  $("origin").textContent = links.length ? HINT : "";
  if (!node) return;
  node.classList.add("is-here");
  const found = linked(node, side);
  for (const each of found) each.node.classList.add("is-lit");
  const told = found.map((each) => each.node.textContent).join(", ");
  // Each in its own direction.
  const [word, others] = [node.textContent, told].map((textContent) => make("bdi", { textContent }));
  if (told) $("origin").replaceChildren(word, side === "target" ? " ← " : " → ", others);
  node.dispatchEvent(new CustomEvent("lit", { bubbles: true, detail: { targetStart: found[0]?.link.targetStart } }));
}

function sourceWordAt(offset) {
  if ($("text").value !== sourceText) return null;
  return [...$("marks").querySelectorAll(".word")].find(
    (node) => Number(node.dataset.start) <= offset && offset < Number(node.dataset.end),
  );
}

// By pointer. The field lies above its marks: of all that is under the pointer, the word is asked for.
$("text").addEventListener("pointermove", (event) => {
  const under = document.elementsFromPoint(event.clientX, event.clientY);
  lightUp(under.find((node) => node.matches("#marks .word")), "source");
});
for (const kind of ["pointerover", "focusin"])
  $("translation").addEventListener(kind, (event) => lightUp(event.target.closest(".word"), "target"));
for (const id of ["text", "translation"])
  for (const kind of ["pointerleave", "focusout"]) $(id).addEventListener(kind, () => lightUp(null));

// By keyboard or touch: in the text the word that the caret is in; in the translation the arrows go from word to word.
document.addEventListener("selectionchange", () => {
  if (document.activeElement !== $("text")) return;
  const offset = [...$("text").value.slice(0, $("text").selectionStart)].length;
  lightUp(sourceWordAt(offset), "source");
});
$("translation").addEventListener("keydown", (event) => {
  const words = [...$("translation").querySelectorAll(".word")];
  const at = words.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: words.length - 1 }[event.key];
  if (at < 0 || !words[to]) return;
  event.preventDefault();
  words[at].tabIndex = -1;
  words[to].tabIndex = 0;
  words[to].focus();
});
