// Sends forms with data-upload in the background and shows how far the upload is. Without it the browser sends them.
"use strict";

// The admin's messages are in #main; the site's pages have #content alone.
const PART = document.querySelector("#main") ? "#main" : "#content";

function show(request, form) {
  const target = new URL(request.responseURL);
  const part = new DOMParser().parseFromString(request.responseText, "text/html").querySelector(PART);
  if (request.status < 400 && target.pathname !== location.pathname) location.assign(target);
  // The same page, with what it says now: a message is shown once, so it is not asked for again.
  else if ((request.status < 400 || request.status === 422) && part) document.querySelector(PART).replaceWith(part);
  else return false;
  if (request.status === 422) keepFiles(form);
  return true;
}

// The form came back with errors. A file that has one is chosen again: once it is corrected, browsers no longer read it.
function keepFiles(form) {
  for (const input of form.querySelectorAll("input[type=file]")) {
    const shown = document.getElementById(input.id);
    if (shown && !shown.matches("[aria-invalid=true]")) shown.files = input.files;
  }
  document.querySelector("[aria-invalid=true]")?.focus();
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-upload]");
  const bar = form && form.querySelector("progress");
  const files = form ? [...form.querySelectorAll("input[type=file]")].flatMap((input) => [...input.files]) : [];
  if (!bar || !files.length) return;
  event.preventDefault();
  const data = new FormData(form);
  const request = new XMLHttpRequest();
  const setBusy = (isBusy) => {
    bar.hidden = !isBusy;
    for (const button of form.querySelectorAll("button")) button.disabled = isBusy;
  };
  // What cannot be shown here, the browser shows.
  const fallBack = () => {
    setBusy(false);
    form.submit();
  };
  request.upload.addEventListener("progress", (sent) => {
    if (sent.lengthComputable) bar.value = sent.loaded / sent.total;
  });
  request.addEventListener("load", () => show(request, form) || fallBack());
  request.addEventListener("error", fallBack);
  setBusy(true);
  request.open("POST", form.action);
  request.send(data);
});
