// A file: chosen or dropped, translated with progress, and fetched.

import { ApiError, postForm } from "./api.js";
import { $ } from "./elements.js";
import { protectionOf } from "./glossary.js";
import { nameOf } from "./languages.js";

const FORM_BYTES = 64 * 1024;
const MEBIBYTE = 1024 * 1024;

let server = null;
let file = null;
let underWay = null;

const megabytes = (bytes) => `${(bytes / MEBIBYTE).toFixed(1)} MiB`;
const isTable = (name) => /\.[ct]sv(\.gz)?$/i.test(name);

/** From now on, by these settings and languages of the server. */
export function beginFiles(settings, languages) {
  server = { settings, languages };
  $("chosen").accept = [...settings.fileSuffixes, ".gz"].join(",");
}

function way() {
  const [source, target] = [$("source").value, $("target").value];
  if (!source) return [["", target]];
  const found = server.languages.wayOf(source, target);
  if (found?.length === 1) return found;
  throw new ApiError(`A file goes through one model, and none is from ${nameOf(source)} to ${nameOf(target)}.`);
}

function form() {
  const [[sourceLanguage, targetLanguage]] = way();
  const made = new FormData();
  made.append("config", JSON.stringify({ sourceLanguage, targetLanguage, ...protectionOf(way()) }));
  if (isTable(file.name))
    for (const column of $("columns").value.split(",")) if (column.trim()) made.append("columns", column.trim());
  made.append("file", file);
  return made;
}

function tell(state, { value = null, closes = "Cancel", isProblem = false } = {}) {
  $("file-state").textContent = state;
  $("file-state").classList.toggle("is-over", isProblem);
  $("file-progress").hidden = value === null;
  if (value === undefined) $("file-progress").removeAttribute("value");
  else if (value !== null) $("file-progress").value = value;
  $("file-close").textContent = closes;
}

export function take(chosen) {
  if (!chosen || !server) return;
  close();
  file = chosen;
  $("file-title").textContent = chosen.name;
  $("file").hidden = false;
  const most = server.settings.maxBodyBytes - FORM_BYTES;
  const isTooLarge = chosen.size > most;
  $("table").hidden = isTooLarge || !isTable(chosen.name);
  if (isTooLarge)
    refuse(
      `The file has ${megabytes(chosen.size)}, and this server takes ${megabytes(most)}: more with a larger ` +
        "--max-http-body-bytes. The command dragoman translate-file has no such limit.",
    );
  else if (isTable(chosen.name)) {
    tell("", { closes: "Close" });
    $("columns").focus();
  } else translateFile();
}

function refuse(message) {
  tell(message, { closes: "Close", isProblem: true });
}

async function translateFile() {
  underWay?.abort();
  underWay = new AbortController();
  const { signal } = underWay;
  $("download").hidden = true;
  try {
    const sent = form();
    tell("Sending…", { value: undefined });
    for await (const { kind, data } of postForm("v1/translateFile", sent, signal)) {
      if (kind === "progress") tell(`${data.done} of ${data.total} texts`, { value: data.total ? data.done / data.total : 1 });
      if (kind === "file") offer(data);
    }
  } catch (error) {
    if (error.name === "AbortError") return;
    refuse(error.message);
  }
}

function offer({ path, name, failed, sourceLanguage, model }) {
  const failures = failed ? ` ${failed} ${failed === 1 ? "text" : "texts"} could not be translated and stayed as they were.` : "";
  tell(`From ${nameOf(sourceLanguage)}, by ${model || "no model"}.${failures}`, { closes: "Close" });
  $("download").href = path;
  $("download").download = name;
  $("download").textContent = `Download ${name}`;
  $("download").hidden = false;
  $("download").focus();
}

function close() {
  underWay?.abort();
  file = null;
  for (const id of ["chosen", "columns"]) $(id).value = "";
  $("file").hidden = true;
  $("download").hidden = true;
}

$("choose").addEventListener("click", () => $("chosen").click());
$("chosen").addEventListener("change", () => take($("chosen").files[0]));
$("file-close").addEventListener("click", () => {
  close();
  $("choose").focus();
});
$("table").addEventListener("submit", (event) => {
  event.preventDefault();
  translateFile();
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
