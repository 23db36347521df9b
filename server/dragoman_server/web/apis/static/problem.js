// What went wrong with the text, and when it is tried again.

import { $ } from "./elements.js";
import { say } from "./strings.js";

let timer = 0;
let again = () => {};

export function clearProblem() {
  clearInterval(timer);
  $("problem").hidden = true;
  $("problem-text").textContent = "";
}

/** Tells of an error; `retry` is called when the server said to come again, or by the button. */
export function showProblem(error, retry = null) {
  clearProblem();
  again = retry ?? (() => {});
  Object.assign($("problem-text"), { textContent: error.message, lang: error.language ?? "" });
  const comesAgain = retry !== null && error.retrySeconds != null;
  $("problem-wait").parentElement.hidden = !comesAgain;
  $("problem").hidden = false;
  if (!comesAgain) return;
  let left = Math.ceil(error.retrySeconds);
  const tell = () => {
    $("problem-wait").textContent = say("Trying again in {seconds} s.", { seconds: left });
  };
  tell();
  timer = setInterval(() => {
    left -= 1;
    if (left > 0) tell();
    else retryNow();
  }, 1000);
}

function retryNow() {
  clearProblem();
  again();
}

$("problem-again").addEventListener("click", retryNow);
