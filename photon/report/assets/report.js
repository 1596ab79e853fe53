"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const root = document.documentElement;

  // A picture that is shown again holds no copy of itself.
  for (const image of all("img[data-same]")) image.src = at(image.dataset.same).src;

  const cards = all(".card");
  const lightbox = at("lightbox");
  let current = null; // the card that the lightbox shows
  const controls = { task: at("task"), class: at("class"), score: at("score"), tags: at("tags") };
  const views = ["run", "tasks", "rows", "made"];

  // ---- The view: what is filtered, the theme and the open row, as the address's part after #: it can be passed on.

  function readView() {
    if (views.includes(location.hash.slice(1))) return undefined;
    const told = new URLSearchParams(location.hash.slice(1));
    for (const name of ["task", "class"]) {
      const wanted = told.get(name) ?? "";
      const known = [...controls[name].options].some((option) => option.value === wanted);
      controls[name].value = known ? wanted : "";
    }
    const score = Number(told.get("score"));
    controls.score.value = Number.isFinite(score) ? score : 0;
    controls.tags.checked = told.get("names") === "1";
    const theme = told.get("theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    return cards.find((card) => card.id === told.get("row"));
  }

  function writeView() {
    const told = new URLSearchParams();
    for (const name of ["task", "class"]) if (controls[name].value) told.set(name, controls[name].value);
    if (Number(controls.score.value) > 0) told.set("score", controls.score.value);
    if (controls.tags.checked) told.set("names", "1");
    if (root.dataset.theme) told.set("theme", root.dataset.theme);
    if (lightbox.open) told.set("row", current.id);
    history.replaceState(null, "", `#${told}`);
  }

  // ---- The filter: marks by task, label and score; a card stays if anything of the task and label is left in it.

  const numberOf = (select) => select.selectedOptions[0].dataset.n;

  function applyFilter() {
    const task = numberOf(controls.task);
    const label = numberOf(controls.class);
    const score = Number(controls.score.value);
    let rows = 0;
    let marks = 0;
    for (const card of cards) {
      let left = 0;
      for (const mark of all(".m", card)) {
        const { t, c, s } = mark.dataset;
        mark.hidden = (task && t !== task) || (label && c !== label) || Number(s) < score;
        if (!mark.hidden) left += 1;
      }
      let lines = 0;
      for (const line of all(".line", card)) {
        line.hidden = Boolean(task) && line.dataset.t !== task;
        if (!line.hidden) lines += 1;
      }
      card.hidden = Boolean(task || label) && left === 0 && (Boolean(label) || lines === 0);
      if (!card.hidden) {
        rows += 1;
        marks += left;
      }
    }
    for (const gallery of all(".gallery")) {
      const shown = all(".card", gallery).filter((card) => !card.hidden).length;
      gallery.classList.toggle("empty", shown === 0);
      gallery.querySelector(".count").textContent = shown;
    }
    root.classList.toggle("tagged", controls.tags.checked);
    at("least").textContent = score.toFixed(2);
    at("matching").textContent = `${rows.toLocaleString("en")} rows, ${marks.toLocaleString("en")} marks`;
  }

  // ---- The lightbox: a row in full width, with what was found in it as a table.

  function made(name, text, className) {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  }

  function tableOf(marks) {
    const table = made("table");
    const head = table.createTHead().insertRow();
    for (const name of ["label", "task", "score"]) head.append(made("th", name, name === "score" ? "n" : ""));
    const body = table.createTBody();
    for (const mark of marks.sort((one, other) => other.dataset.s - one.dataset.s)) {
      const row = body.insertRow();
      const name = row.insertCell();
      name.append(made("i", "", `chip c${mark.dataset.c}`), made("bdi", mark.dataset.label));
      row.append(made("td", mark.dataset.task, "quiet"), made("td", Number(mark.dataset.s).toFixed(3), "n"));
      row.addEventListener("mouseenter", () => point(mark, true));
      row.addEventListener("mouseleave", () => point(mark, false));
    }
    return table;
  }

  function point(mark, on) {
    mark.classList.toggle("hot", on);
    mark.parentElement.classList.toggle("dim", on);
  }

  function nameMarks(marks) {
    const names = (select) => new Map([...select.options].map((option) => [option.dataset.n, option.value]));
    const [tasks, labels] = [names(controls.task), names(controls.class)];
    for (const mark of marks) {
      mark.dataset.task = tasks.get(mark.dataset.t);
      mark.dataset.label = labels.get(mark.dataset.c);
    }
  }

  function show(card) {
    current = card;
    const shown = cards.filter((other) => !other.hidden && other.parentElement === card.parentElement);
    const gallery = card.closest(".gallery");
    at("lightbox-title").textContent = card.querySelector("h4").textContent;
    at("lightbox-where").textContent = `${gallery.getAttribute("aria-label")}, ${shown.indexOf(card) + 1} of ${shown.length}`;
    const seen = card.querySelector(".mat").cloneNode(true);
    const mat = made("div", "", seen.className);
    mat.append(...seen.childNodes);
    for (const image of all("img", mat)) image.removeAttribute("id");
    mat.classList.add("tagged");
    const marks = all(".m", mat).filter((mark) => !mark.hidden);
    nameMarks(marks);
    const lines = all(".line", card).filter((line) => !line.hidden).map((line) => line.cloneNode(true));
    at("lightbox-picture").replaceChildren(mat);
    at("lightbox-told").replaceChildren(...lines, ...(marks.length ? [tableOf(marks)] : []));
    if (!lightbox.open) lightbox.showModal();
    writeView();
  }

  function step(by) {
    const shown = cards.filter((card) => !card.hidden);
    const place = shown.indexOf(current) + by;
    if (place >= 0 && place < shown.length) show(shown[place]);
  }

  function setUpLightbox() {
    for (const card of cards) card.querySelector("button.mat")?.addEventListener("click", () => show(card));
    at("previous").addEventListener("click", () => step(-1));
    at("next").addEventListener("click", () => step(1));
    at("close").addEventListener("click", () => lightbox.close());
    lightbox.addEventListener("click", (event) => event.target === lightbox && lightbox.close());
    lightbox.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by) {
        event.preventDefault();
        step(by);
      }
    });
    // Back to the row that was looked at last, not to the one that was opened first.
    lightbox.addEventListener("close", () => {
      current.querySelector("button.mat")?.focus();
      writeView();
    });
  }

  // ---- Setting up.

  function setUpTheme() {
    const button = at("theme");
    const isDark = () => root.dataset.theme === "dark" || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    const name = () => (button.textContent = isDark() ? "Light" : "Dark");
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      name();
      if (controls.task) writeView();
    });
    name();
  }

  if (controls.task) {
    at("filters").hidden = false;
    at("filters").addEventListener("submit", (event) => event.preventDefault());
    at("filters").addEventListener("input", () => {
      applyFilter();
      writeView();
    });
    at("everything").addEventListener("click", () => {
      at("filters").reset();
      applyFilter();
      writeView();
    });
    setUpLightbox();
    const look = () => {
      const row = readView();
      applyFilter();
      if (row) show(row);
      else if (lightbox.open) lightbox.close();
    };
    addEventListener("hashchange", look);
    look();
  }
  setUpTheme();
})();
