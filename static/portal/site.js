// The few things on every page that need a script: colours, numbers, copying, local times, menus that close.
(() => {
  const root = document.documentElement;

  // For drawings on a canvas: tokens such as light-dark(…) are resolved by the browser, on an element.
  function token(name) {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const colour = getComputedStyle(probe).color;
    probe.remove();
    return colour;
  }

  // As the page writes numbers (portal/templatetags/display.py): thousands are parted by narrow spaces in every language.
  function localNumber(value, format) {
    const parts = new Intl.NumberFormat(root.lang, format).formatToParts(value);
    return parts.map((part) => (part.type === "group" ? "\u202f" : part.value)).join("");
  }
  window.cobblestone = { token, localNumber };

  const THEMES = ["system", "light", "dark"];
  const NAMES = {
    system: gettext("Colours: same as your system"), light: gettext("Colours: light"), dark: gettext("Colours: dark"),
  };

  function labelSwitch(button, theme) {
    button.setAttribute("aria-label", interpolate(gettext("%(colours)s. Change"), { colours: NAMES[theme] }, true));
    button.title = NAMES[theme];
  }

  function nextTheme(button) {
    const theme = THEMES[(THEMES.indexOf(root.dataset.theme ?? "system") + 1) % THEMES.length];
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // Storage is switched off: the choice holds for this page.
    }
    labelSwitch(button, theme);
    document.dispatchEvent(new CustomEvent("themechange"));
  }

  async function copy(button) {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
      button.textContent = gettext("Copied");
    } catch {
      // No permission, or no HTTPS: select the text so that the visitor can copy it.
      getSelection().selectAllChildren(source);
      button.textContent = gettext("Selected");
    }
    setTimeout(() => { button.textContent = gettext("Copy"); }, 2000);
  }

  // English as the site writes it: the day first, and 24 hours.
  const locale = root.lang === "en" ? "en-GB" : root.lang;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

  // The first page comes with times in UTC; the cookie has all others come with those of the browser's zone.
  function tellZone() {
    const secure = location.protocol === "https:" ? "; secure" : "";
    if (zone && root.dataset.zone === "UTC") document.cookie = `time_zone=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;
  }

  function showLocalTimes(scope) {
    const format = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
    for (const time of scope.querySelectorAll("time[data-local]")) time.textContent = format.format(new Date(time.dateTime));
  }

  // Tables that are too wide for a phone: a block for each row (site.css), each value behind the name of its column.
  const phone = matchMedia("(max-width: 639px)");
  const ROLES = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TFOOT: "rowgroup", TR: "row", TD: "cell" };

  function stackTables() {
    for (const wrap of document.querySelectorAll(".table-wrap, .table-scroll")) {
      wrap.classList.remove("is-stacked");
      const table = wrap.querySelector("table");
      if (!phone.matches || table.tHead?.rows.length !== 1 || wrap.scrollWidth <= wrap.clientWidth) continue;
      nameColumns(table);
      wrap.classList.add("is-stacked");
    }
  }

  function nameColumns(table) {
    const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
    // Some browsers forget that it is a table when its rows are blocks.
    for (const part of [table, ...table.querySelectorAll("thead, tbody, tfoot, tr, td")]) part.role = ROLES[part.tagName];
    for (const row of [...table.tBodies, table.tFoot].flatMap((part) => [...(part?.rows ?? [])])) {
      let column = 0;
      for (const cell of row.cells) {
        if (cell.tagName === "TH") cell.role = "rowheader";
        else if (cell.colSpan === 1) cell.dataset.column = names[column];
        column += cell.colSpan;
      }
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy], [data-theme-switch]");
    if (button?.dataset.copy) copy(button);
    else if (button) nextTheme(button);
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
  document.addEventListener("htmx:load", (event) => {
    showLocalTimes(event.target);
    stackTables();
  });
  phone.addEventListener("change", stackTables);
  // What is folded has no width before it is opened; this event does not bubble.
  document.addEventListener("toggle", stackTables, true);
  for (const button of document.querySelectorAll("[data-theme-switch]")) {
    labelSwitch(button, root.dataset.theme ?? "system");
  }
  // Open on wide pages; on a phone the page would be too long to survey.
  if (matchMedia("(max-width: 639px)").matches) {
    for (const fold of document.querySelectorAll("details[data-folds]")) fold.open = false;
  }
  tellZone();
  showLocalTimes(document);
  stackTables();
})();
