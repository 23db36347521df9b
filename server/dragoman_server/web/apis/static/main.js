// The page: translates as one types, and shows what comes from what. It calls /v1 of the server it came from.

import { ApiError, get, post } from "./api.js";
import { showAttention } from "./attention.js";
import { offerCopies } from "./copying.js";
import { $, make } from "./elements.js";
import { beginFiles } from "./file.js";
import { beginGlossary, fillNamed, protectionOf } from "./glossary.js";
import { Languages, choose, fillSources, fillTargets, nameOf, proposedTarget, writeIn } from "./languages.js";
import { browser, linkTo, tab, takeLink } from "./memory.js";
import { clearProblem, showProblem } from "./problem.js";
import { number, percent, say } from "./strings.js";
import { showWarnings } from "./warnings.js";
import { clearMarks, showWords } from "./words.js";

const PAUSE_MILLISECONDS = 300;
const NUM_HYPOTHESES = 4;
const SURE = 0.75;
const USABLE = 0.5;

let languages = new Languages([], "");
let settings = { maxTextCharacters: Infinity };
let isReady = false;
let timer = 0;
let underWay = null;
let detected = "";
let turnedFrom = "";

function showTexts(text, target, links, warnings, numSentences = 0, confidences = []) {
  const unsure = confidences.filter((each) => each.confidence < USABLE);
  showWords(text, target, links, warnings, unsure);
  showWarnings(text, warnings, unsure);
  showAttention(text, target, links, numSentences);
  for (const id of ["copy", "share"]) $(id).hidden = !target;
  document.body.classList.remove("is-old");
  $("translation").removeAttribute("aria-busy");
}

/** Shows the first hypothesis as the translation, and the others to be taken in its place. */
function showHypotheses(text, hypotheses, translation) {
  const [first, ...others] = hypotheses;
  const { warnings, sentences, hypotheses: found, sentenceConfidences } = translation;
  // They are of the best one.
  const confidences = first === found[0] ? sentenceConfidences : [];
  showTexts(text, first.text, first.alignments ?? [], warnings, sentences, confidences);
  const buttons = others.map((other, rank) => {
    const button = make("button", { type: "button", textContent: other.text });
    button.addEventListener("click", () => {
      if ($("text").value !== text) return;
      showHypotheses(text, [other, ...others.with(rank, first)], translation);
      $("alternative-list").querySelectorAll("button")[rank].focus();
    });
    return button;
  });
  $("alternative-list").replaceChildren(...buttons.map((button) => make("li", {}, button)));
  $("alternatives").hidden = !others.length;
}

/** An answer, of one model or two; `milliseconds` until it came. */
function show(answer, text, milliseconds) {
  const translation = answer.translations[0];
  const { hypotheses } = translation;
  showHypotheses(text, hypotheses.length ? hypotheses : [{ text: translation.text }], translation);
  $("timing").textContent = `${number(milliseconds)} ms`;
  const models = answer.path.length ? answer.path : [answer.model];
  $("model").replaceChildren(...models.map((each) => make("p", { textContent: describeModel(each) })));
}

function describeModel({ name, version }) {
  const model = languages.models.find((each) => each.name === name && each.version === version);
  return [say("Model {name}", { name: `${name}/${version}` }), model?.licence, model?.credit].filter(Boolean).join(" · ");
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
  const values = { language: nameOf(detected || (looks?.language ?? "")), share: percent(found.confidence) };
  const isSure = found.confidence >= SURE && found.candidates[0].language === detected;
  if (detected)
    $("detected").textContent = isSure
      ? `${values.language}, ${values.share}`
      : say("Taken for {language}, {share}: too short to be sure", values);
  else if (looks)
    $("detected").textContent = say("None of this server's languages; it looks like {language}", values);
  return detected;
}

function numHypotheses(way) {
  const beams = languages.modelsOf(...way.at(-1)).map((model) => model.defaults.beamSize);
  return Math.min(NUM_HYPOTHESES, ...beams);
}

function showLength(text) {
  const length = [...text].length;
  const limit = settings.maxTextCharacters;
  $("length").textContent = length ? `${number(length)} / ${number(limit)}` : "";
  $("length").classList.toggle("is-over", length > limit);
  if (length <= limit) return;
  const told =
    "The text has {length} characters, and the server takes {limit}. " +
    "Shorten it, or translate it as a file with a paragraph a line.";
  throw new ApiError(say(told, { length: number(length), limit: number(limit) }));
}

function remember() {
  const kept = { source: $("source").value, target: $("target").value, q: $("text").value };
  browser.set("texts", kept);
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
      writeIn($("source").value, "text", "marks");
      clear();
      return;
    }
    const started = performance.now();
    const source = await sourceOf(text, signal);
    writeIn(source, "text", "marks");
    if (turns && source && source === $("target").value) {
      const other = proposedTarget(languages, source, turnedFrom);
      turnedFrom = source;
      fillTargets(languages, other);
    }
    const target = $("target").value;
    writeIn(target, "translation", "alternative-list");
    if (!source || source === target) {
      clear(/\p{L}/u.test(text) && !source ? "" : text);
      if (source) $("detected").textContent = say("{language} already", { language: nameOf(source) });
      return;
    }
    const way = languages.wayOf(source, target);
    if (!way)
      throw new ApiError(
        say("There is no model from {source} to {target}.", { source: nameOf(source), target: nameOf(target) }),
      );
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

/** Shows languages and a text, as a link or the browser has them; none are the browser's own language's. */
function put({ source = "", target = "", q = "" }) {
  choose($("source"), source);
  fillTargets(languages, target, proposedTarget(languages, source, settings.targetLanguage));
  $("text").value = q;
  clearMarks(q);
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
  const typed = $("text").value;
  fillSources(languages);
  put({ ...browser.get("texts"), ...(typed && { q: typed }), ...takeLink() });
  beginFiles(settings, languages);
  $("version").textContent = `Dragoman ${settings.version}`;
  isReady = true;
  translate({ turns: true });
}

function swap() {
  const [source, target] = [$("source").value || detected, $("target").value];
  if (!languages.sources.includes(target)) {
    showProblem(new ApiError(say("There is no model from {source}.", { source: nameOf(target) })));
    return;
  }
  const text = $("translation").textContent;
  choose($("source"), target);
  fillTargets(languages, source);
  if (text) $("text").value = text;
  remember();
  translate();
}

$("text").addEventListener("input", () => {
  clearMarks($("text").value);
  remember();
  soon();
});
$("source").addEventListener("change", () => {
  fillTargets(languages);
  remember();
  translate();
});
$("target").addEventListener("change", () => {
  remember();
  translate();
});
$("swap").addEventListener("click", swap);
$("clear").addEventListener("click", () => {
  browser.remove("texts");
  put({});
  $("text").focus();
  translate();
});
offerCopies({
  copy: () => $("translation").textContent,
  share: () => linkTo({ source: $("source").value, target: $("target").value, q: $("text").value }),
});
window.addEventListener("hashchange", () => {
  const link = takeLink();
  if (!link) return;
  put(link);
  remember();
  translate();
});
$("token").value = tab.get("token") ?? "";
$("token").addEventListener("change", () => {
  tab.set("token", $("token").value);
  begin();
});
$("languages").addEventListener("submit", (event) => event.preventDefault());
clearMarks($("text").value);
beginGlossary(soon);
begin();
