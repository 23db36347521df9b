// The page: translates as one types, and shows what comes from what. It calls /v1 of the server it came from.

const PAUSE_MILLISECONDS = 300;
const NUM_HYPOTHESES = 4;
const WARNINGS = {
  WARNING_KIND_UNKNOWN_TOKENS: "The model can't read this; it is left as it was.",
  WARNING_KIND_SPAN_PUT_BACK: "Kept by translating around it: word order may be wrong.",
  WARNING_KIND_SPAN_MISSING: "This had to be kept and is missing.",
  WARNING_KIND_NUMBER_PUT_BACK: "The model changed this number, and it was put back.",
  WARNING_KIND_NUMBER_MISSING: "This number is not in the translation.",
  WARNING_KIND_REPETITION: "The translation says the same over and over.",
  WARNING_KIND_OUTPUT_LIMIT: "The translation was cut at its limit.",
  WARNING_KIND_LENGTH: "The translation is far longer or shorter than this.",
  WARNING_KIND_UNTRANSLATED: "This was left as it is.",
  WARNING_KIND_FOREIGN_SCRIPT: "This is not in the script of the source language.",
};
const $ = (id) => document.getElementById(id);
const names = new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });
const nameOf = (code) => {
  try {
    return names.of(code);
  } catch {
    return code;
  }
};

let models = [];
let timer = 0;
let underWay = null;
let number = 0;
let shownLinks = [];

async function call(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const token = $("token").value;
  if (token) headers.Authorization = `Bearer ${token}`;
  const response = await fetch(path, body ? { method: "POST", headers, body: JSON.stringify(body), signal } : { headers, signal });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 401) $("token-box").open = true;
  throw new Error(answer.error?.message ?? `the server answered ${response.status}`);
}

function option(code) {
  const made = document.createElement("option");
  made.value = code;
  made.textContent = nameOf(code);
  return made;
}

function fill(select, codes, kept) {
  const fixed = [...select.options].filter((each) => each.value === "");
  select.replaceChildren(...fixed, ...codes.map(option));
  if (kept && codes.includes(kept)) select.value = kept;
}

async function loadModels() {
  models = (await call("v1/models")).models;
  fill($("source"), [...new Set(models.map((model) => model.sourceLanguage))].sort(), $("source").value);
  fillTargets();
}

function fillTargets() {
  const source = $("source").value;
  const fitting = models.filter((model) => !source || model.sourceLanguage === source);
  fill($("target"), [...new Set(fitting.map((model) => model.targetLanguage))].sort(), $("target").value);
}

// Offsets of the API count code points; strings of this language count units of UTF-16.
function pieces(points, links, side, offset) {
  const bounds = new Map();
  for (const link of links) bounds.set(link[`${side}Start`], link[`${side}End`]);
  const made = [];
  let at = 0;
  for (const [start, end] of [...bounds].sort((a, b) => a[0] - b[0])) {
    if (start < at) continue;
    if (start > at) made.push({ text: points.slice(at, start).join(""), start: at, end: start });
    made.push({ text: points.slice(start, end).join(""), start, end, isWord: true });
    at = end;
  }
  if (at < points.length) made.push({ text: points.slice(at).join(""), start: at, end: points.length });
  return made;
}

function write(place, text, links, side, warned) {
  const nodes = pieces([...text], links, side).map((piece) => {
    const node = document.createElement("span");
    node.textContent = piece.text;
    if (warned.some((each) => each.start < piece.end && piece.start < each.end)) node.classList.add("is-warned");
    if (piece.isWord) {
      node.classList.add("word");
      node.tabIndex = 0;
      node.dataset.start = piece.start;
    }
    return node;
  });
  place.replaceChildren(...nodes);
}

function lightUp(node, side) {
  for (const each of document.querySelectorAll(".is-lit, .is-here")) each.classList.remove("is-lit", "is-here");
  if (!node) return;
  node.classList.add("is-here");
  const start = Number(node.dataset.start);
  const [other, place] = side === "target" ? ["source", $("source-words")] : ["target", $("translation")];
  for (const link of shownLinks) {
    if (link[`${side}Start`] !== start) continue;
    place.querySelector(`[data-start="${link[`${other}Start`]}"]`)?.classList.add("is-lit");
  }
}

function show(answer, text, source, milliseconds) {
  const translation = answer.translations[0];
  const best = translation.hypotheses[0];
  const links = best?.alignments ?? [];
  shownLinks = links;
  write($("translation"), translation.text, links, "target", []);
  write($("source-words"), text, links, "source", translation.warnings);
  $("words").hidden = !links.length;
  const points = [...text];
  $("warning-list").replaceChildren(
    ...translation.warnings.map((warning) => {
      const item = document.createElement("li");
      const part = points.slice(warning.start, warning.end).join("");
      item.textContent = `“${part.length > 80 ? `${part.slice(0, 79)}…` : part}” ${WARNINGS[warning.kind] ?? warning.kind}`;
      return item;
    }),
  );
  $("warnings").hidden = !translation.warnings.length;
  const others = translation.hypotheses.slice(1).map((each) => each.text);
  $("alternative-list").replaceChildren(
    ...others.map((other) => {
      const item = document.createElement("li");
      item.textContent = other;
      return item;
    }),
  );
  $("alternatives").hidden = !others.length;
  $("copy").hidden = !translation.text;
  $("timing").textContent = `${milliseconds} ms`;
  const name = answer.model.name;
  const model = models.find((each) => each.name === name && each.version === answer.model.version);
  const parts = [`Model ${name}/${answer.model.version}`, model?.precision, model?.licence, model?.credit];
  $("model").textContent = parts.filter(Boolean).join(" · ");
}

function hypothesesOf(source, target) {
  const beams = models
    .filter((model) => model.sourceLanguage === source && model.targetLanguage === target)
    .map((model) => model.defaults.beamSize);
  return Math.min(NUM_HYPOTHESES, ...beams);
}

function clear() {
  for (const id of ["translation", "source-words", "warning-list", "alternative-list"]) $(id).replaceChildren();
  for (const id of ["words", "warnings", "alternatives", "copy"]) $(id).hidden = true;
  for (const id of ["timing", "detected"]) $(id).textContent = "";
}

async function sourceOf(text, signal) {
  if ($("source").value) {
    $("detected").textContent = "";
    return $("source").value;
  }
  const detected = (await call("v1/detect", { texts: [text] }, signal)).texts[0];
  if (detected.language) {
    $("detected").textContent = `${nameOf(detected.language)}, ${Math.round(100 * detected.confidence)}%`;
    return detected.language;
  }
  const looks = detected.candidates.find((each) => !each.served);
  $("detected").textContent = looks ? `None of this server's languages; it looks like ${nameOf(looks.language)}` : "";
  return "";
}

async function translate() {
  underWay?.abort();
  underWay = new AbortController();
  const { signal } = underWay;
  const mine = ++number;
  const text = $("text").value;
  $("length").textContent = text ? `${[...text].length}` : "";
  $("error").hidden = true;
  if (!text.trim()) {
    clear();
    return;
  }
  $("translation").classList.add("is-old");
  try {
    const started = performance.now();
    const source = await sourceOf(text, signal);
    const target = $("target").value;
    if (!source || source === target) {
      const detected = $("detected").textContent;
      clear();
      $("detected").textContent = detected;
      if (source) $("translation").textContent = text;
      return;
    }
    const answer = await call(
      "v1/translate",
      {
        texts: [text],
        sourceLanguage: source,
        targetLanguage: target,
        returnAlignments: true,
        options: { numHypotheses: hypothesesOf(source, target) },
      },
      signal,
    );
    if (mine === number) show(answer, text, source, Math.round(performance.now() - started));
  } catch (error) {
    if (error.name === "AbortError" || mine !== number) return;
    $("error").textContent = error.message;
    $("error").hidden = false;
  } finally {
    if (mine === number) $("translation").classList.remove("is-old");
  }
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(translate, PAUSE_MILLISECONDS);
}

async function begin() {
  $("token").value = sessionStorage.getItem("token") ?? "";
  try {
    await loadModels();
    $("state").textContent = "";
  } catch (error) {
    $("state").textContent = error.message;
  }
}

for (const [place, side] of [["translation", "target"], ["source-words", "source"]]) {
  for (const kind of ["pointerover", "focusin", "click"])
    $(place).addEventListener(kind, (event) => lightUp(event.target.closest(".word"), side));
  for (const kind of ["pointerleave", "focusout"]) $(place).addEventListener(kind, () => lightUp(null, side));
}
$("text").addEventListener("input", soon);
$("source").addEventListener("change", () => {
  fillTargets();
  translate();
});
$("target").addEventListener("change", translate);
$("swap").addEventListener("click", () => {
  const [source, target] = [$("source").value, $("target").value];
  const text = $("translation").textContent;
  if (![...$("source").options].some((each) => each.value === target)) {
    $("state").textContent = `There is no model from ${nameOf(target)}.`;
    return;
  }
  $("source").value = target;
  fillTargets();
  if (source) $("target").value = source;
  $("text").value = text;
  translate();
});
$("copy").addEventListener("click", async () => {
  await navigator.clipboard?.writeText($("translation").textContent);
  $("copy").textContent = "Copied";
  setTimeout(() => ($("copy").textContent = "Copy"), 1500);
});
$("token").addEventListener("change", () => {
  sessionStorage.setItem("token", $("token").value);
  begin();
});
$("languages").addEventListener("submit", (event) => event.preventDefault());
begin();
