// What the browser remembers for the page, and links that carry a text. None of it is sent to the server.

/** Values by name. Where the browser stores nothing for pages, there are none. */
function storage(open) {
  const attempt = (work) => {
    try {
      return work(open());
    } catch {
      return null;
    }
  };
  return {
    get: (name) => attempt((store) => JSON.parse(store.getItem(name))),
    set: (name, value) => attempt((store) => store.setItem(name, JSON.stringify(value))),
    remove: (name) => attempt((store) => store.removeItem(name)),
  };
}

export const browser = storage(() => localStorage);
export const tab = storage(() => sessionStorage);

/** A link to this page with languages and a text, in its fragment: what stands there reaches no server. */
export function linkTo({ source, target, q }) {
  return `${location.origin}${location.pathname}#${new URLSearchParams({ source: source || "auto", target, q })}`;
}

/** What the page's address asks for, in its fragment or, as with LibreTranslate, its query; null for nothing.
 *
 * The address is a plain one from then on, so that the page, opened again, shows what it showed last.
 */
export function takeLink() {
  const asks = (parameters) => ["source", "target", "q"].some((name) => parameters.has(name));
  const found = [location.hash.slice(1), location.search].map((each) => new URLSearchParams(each)).find(asks);
  if (!found) return null;
  history.replaceState(null, "", location.pathname);
  const source = found.get("source") ?? "";
  return { source: source === "auto" ? "" : source, target: found.get("target") ?? "", q: found.get("q") ?? "" };
}
