// The page's own words, in the browser's language where strings.json has it.
//
// The English ones stand in the page and in its scripts, and are the keys of the others.

const translations = await fetch("page/strings.json")
  .then((response) => response.json())
  .catch(() => ({}));
const primary = (code) => code.toLowerCase().split("-")[0];

export const language =
  navigator.languages.map(primary).find((code) => code === "en" || code in translations) ?? "en";

/** English words in the page's language, with values for the names in braces. */
export function say(words, values = {}) {
  const said = translations[language]?.[words] ?? words;
  return said.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

export const number = (value) => value.toLocaleString(language);
export const percent = (share) => share.toLocaleString(language, { style: "percent" });

const ATTRIBUTES = ["aria-label", "content", "data-empty", "placeholder", "title"];

function translatePage() {
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("*")) {
    for (const name of ATTRIBUTES)
      if (element.hasAttribute(name)) element.setAttribute(name, say(element.getAttribute(name)));
    for (const node of element.childNodes)
      if (node.nodeType === Node.TEXT_NODE)
        node.data = node.data.replace(/\S(.*\S)?/s, (words) => say(words.replace(/\s+/g, " ")));
  }
}

translatePage();
