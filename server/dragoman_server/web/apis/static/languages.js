// The languages of the models, and the way from one to another: one model, or two with a language between.

import { $, make } from "./elements.js";
import { language, say } from "./strings.js";

const RIGHT_TO_LEFT = ["Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa"];

const names = new Intl.DisplayNames([language], { type: "language", fallback: "code" });

export function nameOf(code) {
  try {
    return names.of(code);
  } catch {
    return code;
  }
}

/** Writes elements in a language, and from that side; "" is none that is known. */
export function writeIn(code, ...ids) {
  const isReversed = code && RIGHT_TO_LEFT.includes(new Intl.Locale(code).maximize().script);
  for (const id of ids) Object.assign($(id), { lang: code, dir: code ? (isReversed ? "rtl" : "ltr") : "auto" });
}

/** Of many languages a model translates from each to each other. */
const sourcesOf = ({ languages, sourceLanguage }) => (languages.length ? languages : [sourceLanguage]);
const targetsOf = ({ languages, targetLanguage }) => (languages.length ? languages : [targetLanguage]);

export class Languages {
  constructor(models, pivot) {
    this.models = models;
    this.pivot = pivot;
    this.sources = [...new Set(models.flatMap(sourcesOf))].sort();
    this.codes = [...new Set(models.flatMap((model) => [...sourcesOf(model), ...targetsOf(model)]))].sort();
  }

  modelsOf(source, target) {
    return this.models.filter(
      (each) =>
        sourcesOf(each).includes(source) &&
        targetsOf(each).includes(target) &&
        (each.languages.length === 0 || source !== target),
    );
  }

  /** The models' pairs, one after the other: of one, or of two. Null where there is no way. */
  wayOf(source, target) {
    if (this.modelsOf(source, target).length) return [[source, target]];
    const between = [this.pivot, ...this.codes].find(
      (code) => code && this.modelsOf(source, code).length && this.modelsOf(code, target).length,
    );
    return between && source !== target ? [[source, between], [between, target]] : null;
  }

  /** By how many models a target is reached at least, from a source or from any. */
  stepsTo(target, source) {
    const sources = source ? [source] : this.sources;
    return Math.min(...sources.map((each) => this.wayOf(each, target)?.length ?? Infinity));
  }
}

function option(code) {
  const name = nameOf(code);
  return make("option", { value: code, textContent: name[0].toLocaleUpperCase(language) + name.slice(1) });
}

export function choose(select, code) {
  if ([...select.options].some((each) => each.value === code)) select.value = code;
}

export function fillSources(languages) {
  const before = $("source").value;
  $("source").replaceChildren($("source").options[0], ...languages.sources.map(option));
  choose($("source"), before);
}

/** The language of the browser that texts can be translated to from a source, or from any; the server's proposal else. */
export function proposedTarget(languages, source, proposal) {
  const primary = (code) => code.toLowerCase().split("-")[0];
  const reached = languages.codes.filter((code) => code !== source && languages.stepsTo(code, source) <= 2);
  for (const wanted of navigator.languages) {
    const found = reached.find((code) => code === wanted) ?? reached.find((code) => primary(code) === primary(wanted));
    if (found) return found;
  }
  return reached.includes(proposal) ? proposal : reached.find((code) => languages.stepsTo(code, source) === 1);
}

/** Shows the targets of the chosen source, and chooses the first of those wanted that is among them. */
export function fillTargets(languages, ...wanted) {
  const before = $("target").value;
  const source = $("source").value;
  const reached = (steps) => languages.codes.filter((code) => languages.stepsTo(code, source) === steps);
  const further = reached(2).map(option);
  const group = make("optgroup", { label: say("Through another language") }, ...further);
  $("target").replaceChildren(...reached(1).map(option), ...(further.length ? [group] : []));
  for (const code of [before, ...wanted.toReversed()]) choose($("target"), code);
}
