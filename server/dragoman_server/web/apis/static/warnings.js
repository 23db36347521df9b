// What a reader should check, in words.

import { $, make } from "./elements.js";
import { percent, say } from "./strings.js";

const TOLD = {
  WARNING_KIND_UNKNOWN_TOKENS: say("The model can't read this; it is left as it was."),
  WARNING_KIND_SPAN_PUT_BACK: say("Kept by translating around it: word order may be wrong."),
  WARNING_KIND_SPAN_MISSING: say("This had to be kept and is missing."),
  WARNING_KIND_NUMBER_PUT_BACK: say("The model changed this number, and it was put back."),
  WARNING_KIND_NUMBER_MISSING: say("This number is not in the translation."),
  WARNING_KIND_REPETITION: say("The translation repeats itself."),
  WARNING_KIND_OUTPUT_LIMIT: say("The translation was cut at its limit."),
  WARNING_KIND_LENGTH: say("The translation is far longer than this."),
  WARNING_KIND_UNTRANSLATED: say("This was left as it is."),
  WARNING_KIND_FOREIGN_SCRIPT: say("This is not in the script of the source language."),
  WARNING_KIND_OMISSION: say("The translation is so short that a part is likely to be missing."),
  WARNING_KIND_BRACKETS: say("The brackets or quotes are not those of the translation."),
  WARNING_KIND_NAME_MISSING: say("This name is not in the translation."),
  WARNING_KIND_NUMBER_AMBIGUOUS: say("This number may be a thousand times as much."),
  WARNING_KIND_FORBIDDEN_TERM: say("The translation has a word that is not wanted."),
};
const MAX_CHARACTERS = 80;

/** Warnings, and sentences that the model is unsure of, with the reason where no warning has one. */
export function showWarnings(text, warnings, unsure) {
  const points = [...text];
  const tell = (start, end, words) => {
    const part = points.slice(start, end);
    const quoted = part.length > MAX_CHARACTERS ? [...part.slice(0, MAX_CHARACTERS - 1), "…"] : part;
    return make("li", {}, make("q", { dir: "auto", textContent: quoted.join("") }), ` ${words}`);
  };
  const doubts = unsure.map(({ sourceStart, sourceEnd, confidence }) => {
    const hasReason = warnings.some(({ start, end }) => start < sourceEnd && sourceStart < end);
    const words = hasReason
      ? say("Only {share} likely to be translated well.", { share: percent(confidence) })
      : say("Only {share} likely to be translated well: the model was unsure of its words.", { share: percent(confidence) });
    return tell(sourceStart, sourceEnd, words);
  });
  const items = warnings.map(({ kind, start, end }) => tell(start, end, TOLD[kind] ?? kind));
  $("warning-list").replaceChildren(...items, ...doubts);
  $("warnings").hidden = !(warnings.length || unsure.length);
}
