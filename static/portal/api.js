// Lets whoever is signed in try the operations of the REST API that read: the answer is shown below the form.
(() => {
  const MAX_SHOWN_CHARS = 20_000;

  function address(form) {
    const query = new URLSearchParams();
    let path = form.dataset.try;
    for (const input of form.querySelectorAll("input, select")) {
      if ("path" in input.dataset) path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
      else if (input.value) query.set(input.name, input.value);
    }
    return query.size ? `${path}?${query}` : path;
  }

  function shown(text) {
    try {
      return JSON.stringify(JSON.parse(text), null, 2).slice(0, MAX_SHOWN_CHARS);
    } catch {
      return text.slice(0, MAX_SHOWN_CHARS);
    }
  }

  async function attempt(form) {
    const status = form.querySelector("[data-status]");
    const answer = form.querySelector("[data-answer]");
    const url = address(form);
    status.textContent = status.dataset.waiting;
    answer.hidden = true;
    try {
      const reply = await fetch(url);
      answer.textContent = shown(await reply.text());
      status.textContent = `${reply.status} ${reply.statusText}: ${url}`;
      answer.hidden = false;
    } catch {
      status.textContent = status.dataset.failed;
    }
  }

  document.addEventListener("submit", (event) => {
    if (!event.target.dataset.try) return;
    event.preventDefault();
    attempt(event.target);
  });
  // An address may name an operation.
  function openNamed() {
    const named = document.getElementById(location.hash.slice(1));
    if (named?.matches("details")) named.open = true;
  }
  addEventListener("hashchange", openNamed);
  openNamed();
})();
