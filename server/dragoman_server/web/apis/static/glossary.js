// What words are translated by: entries of one's own, and glossaries of the server.

import { $, make } from "./elements.js";
import { nameOf } from "./languages.js";
import { tab } from "./memory.js";
import { number, say } from "./strings.js";

let changed = () => {};

const entries = () =>
  [...$("entries").children]
    .map((item) => [...item.querySelectorAll("input")].map((input) => input.value.trim()))
    .map(([source, target]) => ({ source, target }));
const named = () => [...$("named-list").querySelectorAll("input:checked")].map((input) => input.value);
const isWhole = ({ source, target }) => source && target;

function keep() {
  tab.set("entries", entries());
  const count = entries().filter(isWhole).length + named().length;
  $("glossary-count").textContent = count ? `(${count})` : "";
  changed();
}

function addEntry({ source = "", target = "" } = {}) {
  const removes = say("Remove this entry");
  const remove = make("button", { type: "button", textContent: "×", title: removes, "aria-label": removes });
  const input = (value, placeholder, label) => make("input", { value, placeholder, dir: "auto", "aria-label": label });
  const word = input(source, say("Word"), say("Word of the text"));
  const translation = input(target, say("Translation"), say("Its translation"));
  const item = make("li", {}, word, make("span", { textContent: "→", "aria-hidden": "true" }), translation, remove);
  remove.addEventListener("click", () => {
    item.remove();
    $("add-entry").focus();
    keep();
  });
  $("entries").append(item);
  return word;
}

/** Begins with what the tab kept; `onChange` is called when something else holds. */
export function beginGlossary(onChange) {
  for (const entry of tab.get("entries") ?? []) addEntry(entry);
  keep();
  changed = onChange;
}

/** The server's glossaries, each with the languages of its columns. */
export function fillNamed(glossaries) {
  const before = named();
  $("named-list").replaceChildren(
    ...glossaries.map(({ name, languages, entries }) => {
      const box = make("input", { type: "checkbox", value: name, checked: before.includes(name) });
      const terms = say("terms: {count}", { count: number(entries) });
      return make("label", {}, box, `${name} · ${languages.map(nameOf).join(", ")} · ${terms}`);
    }),
  );
  $("named").hidden = !glossaries.length;
}

/** Of a request: nothing where it goes through two models, which take no terms; the page says so. */
export function protectionOf(way) {
  const terms = entries().filter(isWhole);
  const glossaries = named();
  const isAsked = terms.length + glossaries.length > 0;
  $("glossary-note").hidden = !(isAsked && way.length > 1);
  if (!isAsked) return {};
  if (way.length > 1) {
    const told = "Not used: the text goes through {language}, and a glossary is of one model.";
    $("glossary-note").textContent = say(told, { language: nameOf(way[0][1]) });
    $("glossary").open = true;
    return {};
  }
  return { protection: { terms, glossaries, inflectedTerms: true } };
}

$("add-entry").addEventListener("click", () => addEntry().focus());
$("glossary").addEventListener("input", keep);
