// Sends forms with data-upload in the background and shows how far the upload is. Without it the browser sends them.
"use strict";

for (const form of document.querySelectorAll("form[data-upload]")) {
  form.addEventListener("submit", (event) => {
    const files = [...form.querySelectorAll("input[type=file]")].flatMap((input) => [...input.files]);
    const bar = form.querySelector("progress");
    if (!files.length || !bar) return;
    event.preventDefault();
    const request = new XMLHttpRequest();
    const buttons = form.querySelectorAll("button");
    const again = () => {
      bar.hidden = true;
      for (const button of buttons) button.disabled = false;
    };
    request.upload.addEventListener("progress", (sent) => {
      if (sent.lengthComputable) bar.value = sent.loaded / sent.total;
    });
    request.addEventListener("load", () => {
      const target = new URL(request.responseURL);
      if (request.status < 400 && (target.pathname !== location.pathname || form.dataset.upload === "reload")) {
        location.assign(request.responseURL);
        return;
      }
      // The same page with what is wrong, or the page of an error.
      const answer = new DOMParser().parseFromString(request.responseText, "text/html");
      const content = answer.querySelector("#content");
      const errors = content && content.querySelector(".errorlist, .notice--error, [role=alert]");
      again();
      if (errors) document.querySelector("#content").replaceWith(content);
      else form.submit();
    });
    request.addEventListener("error", () => {
      again();
      form.submit();
    });
    const data = new FormData(form);
    for (const button of buttons) button.disabled = true;
    bar.hidden = false;
    request.open("POST", form.action);
    request.send(data);
  });
}
