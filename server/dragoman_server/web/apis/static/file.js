// A file: chosen or dropped, translated with progress, and fetched.

import { ApiError, postForm } from "./api.js";
import { $, make } from "./elements.js";
import { protectionOf } from "./glossary.js";
import { nameOf } from "./languages.js";
import { language, number, say } from "./strings.js";
import { isTable, namesOf } from "./table.js";

const FORM_BYTES = 64 * 1024;
const MEBIBYTE = 1024 * 1024;

let server = null;
let file = null;
let underWay = null;

const megabytes = (bytes) => `${(bytes / MEBIBYTE).toLocaleString(language, { maximumFractionDigits: 1 })} MiB`;
const maxBytes = () => server.settings.maxBodyBytes - FORM_BYTES;

/** From now on, by these settings and languages of the server. */
export function beginFiles(settings, languages) {
  server = { settings, languages };
  $("chosen").accept = [...settings.fileSuffixes, ".gz"].join(",");
  const formats = settings.fileSuffixes.join(" ");
  $("formats").textContent = say("Files: {formats}, up to {size}", { formats, size: megabytes(maxBytes()) });
}

function way() {
  const [source, target] = [$("source").value, $("target").value];
  if (!source) return [["", target]];
  const found = server.languages.wayOf(source, target);
  if (found?.length === 1) return found;
  const names = { source: nameOf(source), target: nameOf(target) };
  throw new ApiError(say("A file goes through one model, and none is from {source} to {target}.", names));
}

/** The columns that are chosen: by their names, where these tell them apart and are no numbers. */
function columns() {
  const boxes = [...$("columns").querySelectorAll("input")];
  const names = boxes.map((box) => box.value);
  const chosen = [...boxes.keys()].filter((rank) => boxes[rank].checked);
  const areNames = chosen.every((rank) => names.indexOf(names[rank]) === rank && /\D/.test(names[rank]));
  return chosen.map((rank) => (areNames ? names[rank] : String(rank + 1)));
}

function form() {
  const [[sourceLanguage, targetLanguage]] = way();
  const made = new FormData();
  made.append("config", JSON.stringify({ sourceLanguage, targetLanguage, ...protectionOf(way()) }));
  if (isTable(file.name)) for (const column of columns()) made.append("columns", column);
  made.append("file", file);
  return made;
}

function tell(state, { value = null, closes = say("Cancel"), error = null } = {}) {
  Object.assign($("file-state"), { textContent: state, lang: error?.language ?? "" });
  $("file-state").classList.toggle("is-over", error !== null);
  $("file-progress").hidden = value === null;
  if (value === undefined) $("file-progress").removeAttribute("value");
  else if (value !== null) $("file-progress").value = value;
  $("file-close").textContent = closes;
}

function refuse(error) {
  tell(error.message, { closes: say("Close"), error });
}

async function take(chosen) {
  if (!chosen || !server) return;
  close();
  file = chosen;
  $("file-title").textContent = chosen.name;
  $("file").hidden = false;
  if (chosen.size > maxBytes()) {
    const sizes = { size: megabytes(chosen.size), limit: megabytes(maxBytes()) };
    const told = "The file has {size}, and this server takes {limit}. Cut it up, or ask whoever runs the server.";
    refuse(new ApiError(say(told, sizes)));
  } else if (isTable(chosen.name)) await offerColumns();
  else await translateFile();
}

async function offerColumns() {
  const names = await namesOf(file);
  const labels = names.map((value, rank) =>
    make("label", {}, make("input", { type: "checkbox", value }), value || say("Column {rank}", { rank: rank + 1 })),
  );
  $("columns").replaceChildren(...labels);
  $("table").hidden = false;
  tell("", { closes: say("Close") });
  $("columns").querySelector("input").focus();
}

async function translateFile() {
  underWay?.abort();
  underWay = new AbortController();
  const { signal } = underWay;
  $("download").hidden = true;
  try {
    const sent = form();
    tell(say("Sending…"), { value: undefined });
    for await (const { kind, data } of postForm("v1/translateFile", sent, signal)) {
      const counts = { done: number(data.done ?? 0), total: number(data.total ?? 0) };
      if (kind === "progress")
        tell(say("{done} of {total} texts", counts), { value: data.total ? data.done / data.total : 1 });
      if (kind === "file") offer(data);
    }
  } catch (error) {
    if (error.name === "AbortError") return;
    refuse(error);
  }
}

function offer({ path, name, failed, sourceLanguage, model }) {
  const from = say("From {language}", { language: nameOf(sourceLanguage) });
  const left = failed ? say("texts left as they were, since they could not be translated: {count}", { count: number(failed) }) : "";
  tell([from, model, left].filter(Boolean).join(" · "), { closes: say("Close") });
  $("download").href = path;
  $("download").download = name;
  $("download").textContent = say("Download {name}", { name });
  $("download").hidden = false;
  $("download").focus();
}

function close() {
  underWay?.abort();
  file = null;
  $("chosen").value = "";
  for (const id of ["file", "table", "download"]) $(id).hidden = true;
}

$("choose").addEventListener("click", () => $("chosen").click());
$("chosen").addEventListener("change", () => take($("chosen").files[0]));
$("file-close").addEventListener("click", () => {
  close();
  $("choose").focus();
});
$("table").addEventListener("submit", (event) => {
  event.preventDefault();
  if (columns().length) translateFile();
  else refuse(new ApiError(say("Choose at least one column.")));
});
// A file may be dropped anywhere: beside the field it would take the page's place.
document.addEventListener("dragover", (event) => {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  $("text-side").classList.add("is-over");
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) $("text-side").classList.remove("is-over");
});
document.addEventListener("drop", (event) => {
  $("text-side").classList.remove("is-over");
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  take(event.dataTransfer.files[0]);
});
