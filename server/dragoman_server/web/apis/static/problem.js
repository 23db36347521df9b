// What went wrong with the text, and when it is tried again.

import { $ } from "./elements.js";

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
  $("problem-text").textContent =
    error.status === 401 ? "This server asks for a token: give it below, under Token." : error.message;
  const comesAgain = retry !== null && error.retrySeconds != null;
  $("problem-wait").parentElement.hidden = !comesAgain;
  $("problem").hidden = false;
  if (!comesAgain) return;
  let left = Math.ceil(error.retrySeconds);
  const tell = () => {
    $("problem-wait").textContent = `Trying again in ${left} s.`;
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
