// The page: translates as one types, and shows what comes from what. It calls /v1 of the server it came from.

import { ApiError, get, post } from "./api.js";
import { showAttention } from "./attention.js";
import { $, make } from "./elements.js";
import { beginFiles } from "./file.js";
import { beginGlossary, fillNamed, protectionOf } from "./glossary.js";
import { Languages, fillSources, fillTargets, nameOf, proposedTarget } from "./languages.js";
import { clearProblem, showProblem } from "./problem.js";
import { showWarnings } from "./warnings.js";
import { clearMarks, showWords } from "./words.js";

const PAUSE_MILLISECONDS = 300;
const NUM_HYPOTHESES = 4;
const SURE = 0.75;

let languages = new Languages([], "");
let settings = { maxTextCharacters: Infinity };
let isReady = false;
let timer = 0;
let underWay = null;
let detected = "";
let turnedFrom = "";

function showTexts(text, target, links, warnings) {
  showWords(text, target, links, warnings);
  showWarnings(text, warnings);
  showAttention(text, target, links);
  $("copy").hidden = !target;
  document.body.classList.remove("is-old");
  $("translation").removeAttribute("aria-busy");
}

/** An answer, of one model or two; `milliseconds` until it came. */
function show(answer, text, milliseconds) {
  const translation = answer.translations[0];
  const links = translation.hypotheses[0]?.alignments ?? [];
  showTexts(text, translation.text, links, translation.warnings);
  const others = translation.hypotheses.slice(1).map((each) => make("li", { textContent: each.text }));
  $("alternative-list").replaceChildren(...others);
  $("alternatives").hidden = !others.length;
  $("timing").textContent = `${milliseconds} ms`;
  const models = answer.path.length ? answer.path : [answer.model];
  $("model").replaceChildren(...models.map((each) => make("p", { textContent: describeModel(each) })));
}

function describeModel({ name, version }) {
  const model = languages.models.find((each) => each.name === name && each.version === version);
  return [`Model ${name}/${version}`, model?.precision, model?.licence, model?.credit].filter(Boolean).join(" · ");
}

/** Shows no translation, or a text that needs none. */
function clear(text = "") {
  showTexts($("text").value, text, [], []);
  $("alternatives").hidden = true;
  $("timing").textContent = "";
}

/** The chosen language, or the one that the text is in; "" where it is in none of the server's. */
async function sourceOf(text, signal) {
  $("detected").textContent = "";
  detected = $("source").value;
  if (detected) return detected;
  const asked = { texts: [text], targetLanguage: $("target").value };
  const found = (await post("v1/detect", asked, signal)).texts[0];
  detected = found.language;
  const looks = found.candidates.find((each) => !each.served);
  const told = `${nameOf(detected)}, ${Math.round(100 * found.confidence)}%`;
  const isSure = found.confidence >= SURE && found.candidates[0].language === detected;
  if (detected) $("detected").textContent = isSure ? told : `Taken for ${told}: too short to be sure`;
  else if (looks) $("detected").textContent = `None of this server's languages; it looks like ${nameOf(looks.language)}`;
  return detected;
}

function numHypotheses(way) {
  const beams = languages.modelsOf(...way.at(-1)).map((model) => model.defaults.beamSize);
  return Math.min(NUM_HYPOTHESES, ...beams);
}

function showLength(text) {
  const length = [...text].length;
  const most = settings.maxTextCharacters;
  $("length").textContent = length ? `${length.toLocaleString("en")} / ${most.toLocaleString("en")}` : "";
  $("length").classList.toggle("is-over", length > most);
  if (length <= most) return;
  const told = `The text has ${length.toLocaleString("en")} characters, and the server takes ${most.toLocaleString("en")}`;
  throw new ApiError(`${told}. Shorten it, or translate it as a file with a paragraph a line.`);
}

/** With `turns`, as after each key, a text that is in the target language already gets another target. */
async function translate({ turns = false } = {}) {
  clearTimeout(timer);
  if (!isReady) {
    begin();
    return;
  }
  underWay?.abort();
  underWay = new AbortController();
  const { signal } = underWay;
  const text = $("text").value;
  clearProblem();
  document.body.classList.add("is-old");
  $("translation").setAttribute("aria-busy", "true");
  try {
    showLength(text);
    if (!text.trim()) {
      $("detected").textContent = "";
      clear();
      return;
    }
    const started = performance.now();
    const source = await sourceOf(text, signal);
    if (turns && source && source === $("target").value) {
      const other = proposedTarget(languages, source, turnedFrom);
      turnedFrom = source;
      fillTargets(languages);
      if (other) $("target").value = other;
    }
    const target = $("target").value;
    if (!source || source === target) {
      clear(/\p{L}/u.test(text) && !source ? "" : text);
      if (source) $("detected").textContent = `${nameOf(source)} already`;
      return;
    }
    const way = languages.wayOf(source, target);
    if (!way) throw new ApiError(`There is no model from ${nameOf(source)} to ${nameOf(target)}.`);
    const request = {
      texts: [text],
      sourceLanguage: source,
      targetLanguage: target,
      pivotLanguage: way.length > 1 ? way[0][1] : "",
      returnAlignments: true,
      options: { numHypotheses: numHypotheses(way) },
      ...protectionOf(way),
    };
    const answer = await post("v1/translate", request, signal);
    $("text").lang = source;
    $("translation").lang = target;
    show(answer, text, Math.round(performance.now() - started));
  } catch (error) {
    // What stands there stays pale: it is of another text.
    if (error.name === "AbortError") return;
    $("translation").removeAttribute("aria-busy");
    showProblem(error, translate);
  }
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(() => translate({ turns: true }), PAUSE_MILLISECONDS);
}

async function begin() {
  clearProblem();
  try {
    settings = await get("page/settings");
    languages = new Languages((await get("v1/models")).models, settings.pivotLanguage);
    fillNamed((await get("v1/glossaries")).glossaries);
  } catch (error) {
    showProblem(error, begin);
    return;
  }
  fillSources(languages);
  fillTargets(languages, proposedTarget(languages, "", settings.targetLanguage));
  beginFiles(settings, languages);
  isReady = true;
  translate({ turns: true });
}

function swap() {
  const [source, target] = [$("source").value || detected, $("target").value];
  if (!languages.sources.includes(target)) {
    showProblem(new ApiError(`There is no model from ${nameOf(target)}.`));
    return;
  }
  const text = $("translation").textContent;
  $("source").value = target;
  fillTargets(languages);
  if (languages.wayOf(target, source)) $("target").value = source;
  if (text) $("text").value = text;
  translate();
}

/** Whether it was copied. Without TLS a browser has no clipboard for pages but that of its own commands. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = make("textarea", { value: text });
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    $("copy").focus();
    return isCopied;
  }
}

$("text").addEventListener("input", () => {
  clearMarks($("text").value);
  soon();
});
$("source").addEventListener("change", () => {
  fillTargets(languages);
  translate();
});
$("target").addEventListener("change", () => translate());
$("swap").addEventListener("click", swap);
$("copy").addEventListener("click", async () => {
  $("copy").textContent = (await copy($("translation").textContent)) ? "Copied" : "Select it, and copy by keyboard";
  setTimeout(() => ($("copy").textContent = "Copy"), 1500);
});
$("token").value = sessionStorage.getItem("token") ?? "";
$("token").addEventListener("change", () => {
  sessionStorage.setItem("token", $("token").value);
  begin();
});
$("languages").addEventListener("submit", (event) => event.preventDefault());
clearMarks($("text").value);
beginGlossary(soon);
begin();
