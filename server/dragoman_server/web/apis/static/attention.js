// The attention of a translation as a heat map: a table for each sentence, with figures in its cells.

import { $, make } from "./elements.js";
import { pieces } from "./words.js";

const SENTENCE_END = /[.!?…。！？]["'”’»)\]]*$/u;
const LEVELS = [0.05, 0.2, 0.4, 0.6, 0.8];

let shown = { sentences: [], at: 0 };

/** Words with the places between them: those without a link too. */
function wordsOf(text, links, side) {
  const found = [];
  for (const piece of pieces(text, links, side)) {
    if (piece.isWord) found.push(piece);
    else
      for (const match of piece.text.matchAll(/[\p{L}\p{N}]+/gu)) {
        const start = piece.start + [...piece.text.slice(0, match.index)].length;
        found.push({ text: match[0], start, end: start + [...match[0]].length });
      }
  }
  return found;
}

/** For each word of the translation: the end of all links up to it, and the start of all behind it. */
function reaches(targetWords, links) {
  const ofWord = new Map(targetWords.map(({ start }) => [start, []]));
  for (const each of links) ofWord.get(each.targetStart)?.push(each);
  const found = targetWords.map(({ start }) => ofWord.get(start));
  const ends = [];
  for (const some of found) ends.push(Math.max(ends.at(-1) ?? 0, ...some.map((each) => each.sourceEnd)));
  const starts = [];
  let least = Infinity;
  for (let rank = found.length - 1; rank >= 0; rank -= 1) {
    starts[rank] = least;
    least = Math.min(least, ...found[rank].map((each) => each.sourceStart));
  }
  return targetWords.map((_, rank) => ({ end: ends[rank], next: starts[rank] }));
}

/** Cuts both sides where a sentence ends and no link crosses. */
export function sentencesOf(source, target, links) {
  const sourceWords = wordsOf(source, links, "source");
  const targetWords = wordsOf(target, links, "target");
  const bounds = reaches(targetWords, links);
  const points = [...target];
  const sentences = [];
  let first = 0;
  let from = 0;
  targetWords.forEach((word, rank) => {
    const next = targetWords[rank + 1];
    const between = points.slice(word.end, next?.start).join("");
    const ends = SENTENCE_END.test(word.text + between.trimEnd()) || between.includes("\n");
    if (next && (!ends || bounds[rank].next < bounds[rank].end)) return;
    const until = next ? bounds[rank].end : Infinity;
    sentences.push({
      targets: targetWords.slice(first, rank + 1),
      sources: sourceWords.filter((each) => each.start >= from && each.start < until),
    });
    first = rank + 1;
    from = until;
  });
  return sentences;
}

function cell(weight) {
  if (!weight) return make("td");
  const level = LEVELS.filter((least) => weight >= least).length;
  return make("td", { className: `heat-${level}`, textContent: Math.round(100 * weight) });
}

function table({ sources, targets }, weights) {
  const head = sources.map((word) => make("th", { scope: "col" }, make("span", { textContent: word.text })));
  const rows = targets.map((target) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", textContent: target.text }),
      ...sources.map((source) => cell(weights.get(`${source.start} ${target.start}`))),
    ),
  );
  return make(
    "table",
    {},
    make("caption", {
      textContent: "Of each word of the translation, the share in percent that each word of the text has",
    }),
    make("thead", {}, make("tr", {}, make("td"), ...head)),
    make("tbody", {}, ...rows),
  );
}

function draw() {
  const { sentences, at, weights } = shown;
  if (!$("attention").open || !sentences.length) return;
  $("sentences").hidden = sentences.length < 2;
  $("sentence").textContent = `Sentence ${at + 1} of ${sentences.length}`;
  $("sentence-before").disabled = at === 0;
  $("sentence-after").disabled = at === sentences.length - 1;
  $("heat").replaceChildren(table(sentences[at], weights));
}

function go(at) {
  if (at === shown.at || !shown.sentences[at]) return;
  shown.at = at;
  draw();
}

export function showAttention(source, target, links) {
  const weights = new Map(links.map((each) => [`${each.sourceStart} ${each.targetStart}`, each.weight]));
  shown = { sentences: links.length ? sentencesOf(source, target, links) : [], at: 0, weights };
  $("attention").hidden = !links.length;
  draw();
}

$("attention").addEventListener("toggle", draw);
$("sentence-before").addEventListener("click", () => go(shown.at - 1));
$("sentence-after").addEventListener("click", () => go(shown.at + 1));
document.addEventListener("lit", ({ detail: { targetStart } }) => {
  go(shown.sentences.findIndex(({ targets }) => targets.some((word) => word.start === targetStart)));
});
