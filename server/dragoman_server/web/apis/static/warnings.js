// What a reader should check, in words.

import { $, make } from "./elements.js";
import { say } from "./strings.js";

const TOLD = {
  WARNING_KIND_UNKNOWN_TOKENS: say("The model can't read this; it is left as it was."),
  WARNING_KIND_SPAN_PUT_BACK: say("Kept by translating around it: word order may be wrong."),
  WARNING_KIND_SPAN_MISSING: say("This had to be kept and is missing."),
  WARNING_KIND_NUMBER_PUT_BACK: say("The model changed this number, and it was put back."),
  WARNING_KIND_NUMBER_MISSING: say("This number is not in the translation."),
  WARNING_KIND_REPETITION: say("The translation says the same over and over."),
  WARNING_KIND_OUTPUT_LIMIT: say("The translation was cut at its limit."),
  WARNING_KIND_LENGTH: say("The translation is far longer or shorter than this."),
  WARNING_KIND_UNTRANSLATED: say("This was left as it is."),
  WARNING_KIND_FOREIGN_SCRIPT: say("This is not in the script of the source language."),
};
const MAX_CHARACTERS = 80;

export function showWarnings(text, warnings) {
  const points = [...text];
  const items = warnings.map(({ kind, start, end }) => {
    const part = points.slice(start, end);
    const quoted = part.length > MAX_CHARACTERS ? [...part.slice(0, MAX_CHARACTERS - 1), "…"] : part;
    return make("li", {}, make("q", { dir: "auto", textContent: quoted.join("") }), ` ${TOLD[kind] ?? kind}`);
  });
  $("warning-list").replaceChildren(...items);
  $("warnings").hidden = !warnings.length;
}
