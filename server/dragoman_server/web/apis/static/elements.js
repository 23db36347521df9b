// Elements of the page: found by their id, or made.

export const $ = (id) => document.getElementById(id);

/** An element with properties, attributes (those with a dash, and "role", "scope") and children. */
export function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name in { role: 1, scope: 1 }) made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}
