// Buttons that copy a text.

import { $, make } from "./elements.js";
import { say } from "./strings.js";

const TOLD_MILLISECONDS = 1500;

/** Whether it was copied. Without TLS a browser has no clipboard for pages but that of its own commands. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = make("textarea", { value: text });
    const focused = document.activeElement;
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    focused.focus();
    return isCopied;
  }
}

/** Makes each button, by its id, copy what its function returns, and say for a moment whether that worked. */
export function offerCopies(textsOf) {
  for (const [id, textOf] of Object.entries(textsOf)) {
    const label = $(id).textContent;
    $(id).addEventListener("click", async () => {
      $(id).textContent = (await copy(textOf())) ? say("Copied") : say("Select it, and copy by keyboard");
      setTimeout(() => ($(id).textContent = label), TOLD_MILLISECONDS);
    });
  }
}
