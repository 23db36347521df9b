// The attention of a translation as a heat map: a table for each sentence, with figures in its cells.

import { $, make } from "./elements.js";
import { say } from "./strings.js";
import { pieces } from "./words.js";

const SENTENCE_END = /[.!?…。！？]["'”’»)\]]*$/u;
const HEAD_CHARACTERS = 12;
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

/** How much it looks as if a sentence ended before a word: 0 for not at all. `head` stands before the word. */
function cutStrength(head, word) {
  const text = head.trimEnd();
  if (head.slice(text.length).includes("\n")) return 3;
  if (!SENTENCE_END.test(text)) return 0;
  // The point of a date or a number ends none by itself, nor does one before a small letter.
  return /\p{N}\.$/u.test(text) || /^[^\p{L}]|^\p{Ll}/u.test(word) ? 1 : 2;
}

/** Cuts both sides into sentences, as many as the server counted at most: where one ends and no link crosses. */
export function sentencesOf(source, target, links, numSentences) {
  const sourceWords = wordsOf(source, links, "source");
  const targetWords = wordsOf(target, links, "target");
  const bounds = reaches(targetWords, links);
  const points = [...target];
  const strengths = targetWords.slice(1).map((next, rank) => {
    const head = points.slice(Math.max(0, next.start - HEAD_CHARACTERS), next.start).join("");
    return bounds[rank].next < bounds[rank].end ? 0 : cutStrength(head, next.text);
  });
  const cuts = [...strengths.keys()]
    .filter((rank) => strengths[rank])
    .sort((a, b) => strengths[b] - strengths[a])
    .slice(0, Math.max(numSentences - 1, 0))
    .sort((a, b) => a - b);
  let [first, from] = [0, 0];
  return [...cuts, targetWords.length - 1].map((last, place) => {
    const until = place < cuts.length ? bounds[last].end : Infinity;
    const sentence = {
      targets: targetWords.slice(first, last + 1),
      sources: sourceWords.filter((each) => each.start >= from && each.start < until),
    };
    [first, from] = [last + 1, until];
    return sentence;
  });
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
      textContent: say("Of each word of the translation, the share in percent that each word of the text has"),
    }),
    make("thead", {}, make("tr", {}, make("td"), ...head)),
    make("tbody", {}, ...rows),
  );
}

function draw() {
  const { sentences, at, weights } = shown;
  if (!$("attention").open || !sentences.length) return;
  $("sentences").hidden = sentences.length < 2;
  $("sentence").textContent = say("Sentence {rank} of {count}", { rank: at + 1, count: sentences.length });
  $("sentence-before").disabled = at === 0;
  $("sentence-after").disabled = at === sentences.length - 1;
  $("heat").replaceChildren(table(sentences[at], weights));
}

function go(at) {
  if (at === shown.at || !shown.sentences[at]) return;
  shown.at = at;
  draw();
}

export function showAttention(source, target, links, numSentences) {
  const weights = new Map(links.map((each) => [`${each.sourceStart} ${each.targetStart}`, each.weight]));
  shown = { sentences: links.length ? sentencesOf(source, target, links, numSentences) : [], at: 0, weights };
  $("attention").hidden = !links.length;
  draw();
}

$("attention").addEventListener("toggle", draw);
$("sentence-before").addEventListener("click", () => go(shown.at - 1));
$("sentence-after").addEventListener("click", () => go(shown.at + 1));
document.addEventListener("lit", ({ detail: { targetStart } }) => {
  go(shown.sentences.findIndex(({ targets }) => targets.some((word) => word.start === targetStart)));
});
