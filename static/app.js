// What pages do beyond HTMX: say what happened, keep the focus, keep what was typed.
"use strict";

(() => {
  const live = () => document.getElementById("live");
  const person = () => document.body.dataset.person || "";

  // --- One live region. Fragments carry data-announce; servers may send HX-Trigger: announce.
  let lastSaid = "";
  function announce(text) {
    if (!text || text === lastSaid || !live()) return;
    lastSaid = text;
    live().textContent = text;
  }
  document.addEventListener("announce", (event) => announce(event.detail.value || event.detail.text));
  document.addEventListener("htmx:afterSettle", (event) => {
    const marked = event.target.closest("[data-announce]") || event.target.querySelector("[data-announce]");
    if (marked) announce(marked.dataset.announce);
  });
  for (const failure of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(failure, () => announce("The server does not answer. What you typed is kept."));
  }

  // --- The focus stays where it was: on the element with the same id, else on the panel itself.
  let focusedIds = [];
  const isInside = (target) => target && target.contains(document.activeElement);
  const idsFrom = (target) => [document.activeElement.id, target.id].filter(Boolean);
  document.addEventListener("htmx:beforeSwap", (event) => {
    const target = event.detail.target;
    focusedIds = isInside(target) ? idsFrom(target) : [];
  });
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const target = event.detail.target;
    if (isInside(target)) focusedIds = idsFrom(target);
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (document.activeElement !== document.body) return;
    const again = focusedIds.map((id) => document.getElementById(id)).find(Boolean);
    if (!again) return;
    if (again.tabIndex < 0 && !again.hasAttribute("tabindex")) again.setAttribute("tabindex", "-1");
    again.focus({ preventScroll: true });
  });

  // --- Menus and definitions close on Escape and on a click elsewhere.
  const POPOVERS = "details.menu[open], details.definition[open]";
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const open of document.querySelectorAll(POPOVERS)) {
      open.open = false;
      if (open.contains(document.activeElement)) open.querySelector("summary").focus();
    }
  });
  document.addEventListener("click", (event) => {
    for (const open of document.querySelectorAll(POPOVERS)) {
      if (!open.contains(event.target)) open.open = false;
    }
  });

  // --- Drafts: what is typed into form[data-draft] survives a lost session and a closed tab.
  const PREFIX = "draft:";
  const keyOf = (form) => {
    const forms = [...document.querySelectorAll("form[data-draft]")];
    const address = location.pathname + location.search;
    return `${PREFIX}${person()}:${address}:${form.id || forms.indexOf(form)}`;
  };
  const isKept = (field) =>
    field.name && field.name !== "csrfmiddlewaretoken" && !field.disabled &&
    !["password", "file", "submit", "button"].includes(field.type);
  const isChoice = (field) => field.type === "checkbox" || field.type === "radio";
  const valueOf = (field) => {
    if (isChoice(field)) return field.checked;
    return field.multiple ? [...field.selectedOptions].map((option) => option.value) : field.value;
  };
  const initialOf = (field) => {
    if (isChoice(field)) return field.defaultChecked;
    if (field.options) {
      const chosen = [...field.options].filter((option) => option.defaultSelected).map((option) => option.value);
      return field.multiple ? chosen : chosen[0] ?? (field.options[0] ? field.options[0].value : "");
    }
    return field.defaultValue;
  };
  const entries = (form, read) =>
    [...form.elements].filter(isKept).map((field) => [field.name, isChoice(field) ? field.value : "", read(field)]);

  const timers = new Map(); // Forms with something typed that is not stored yet.
  const forget = (key) => { try { localStorage.removeItem(key); } catch { /* As below. */ } };
  function keep(form) {
    try {
      localStorage.setItem(keyOf(form), JSON.stringify({ fields: entries(form, valueOf), at: Date.now() }));
    } catch { /* A full or forbidden store: the page works as without a script. */ }
  }
  function store(form) {
    clearTimeout(timers.get(form));
    timers.delete(form);
    const isAsItCame = JSON.stringify(entries(form, valueOf)) === JSON.stringify(entries(form, initialOf));
    if (isAsItCame && !isAnswer()) forget(keyOf(form));
    else keep(form);
  }
  function put(form, fields) {
    const left = [...form.elements].filter(isKept);
    for (const [name, choice, value] of fields) {
      const index = left.findIndex((field) => field.name === name && (!isChoice(field) || field.value === choice));
      if (index < 0) continue;
      const [field] = left.splice(index, 1);
      if (isChoice(field)) field.checked = value;
      else if (field.multiple) for (const option of field.options) option.selected = value.includes(option.value);
      else field.value = value;
    }
  }
  function restore(form) {
    let draft = null;
    try { draft = JSON.parse(localStorage.getItem(keyOf(form)) || "null"); } catch { return; }
    if (!draft || form.querySelector(".field-error")) return;
    if (JSON.stringify(draft.fields) === JSON.stringify(entries(form, valueOf))) return;
    put(form, draft.fields);
    const note = document.createElement("p");
    note.className = "flash";
    note.setAttribute("role", "status");
    note.textContent = "What you had typed here before was put back. It is not saved yet. ";
    const discard = document.createElement("button");
    discard.type = "button";
    discard.textContent = "Discard it";
    discard.addEventListener("click", () => { forget(keyOf(form)); form.reset(); note.remove(); });
    note.append(discard);
    form.prepend(note);
  }
  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (!form || !form.matches("form[data-draft]")) return;
    clearTimeout(timers.get(form));
    timers.set(form, setTimeout(() => store(form), 300));
  });
  // A tab that is closed, or put away, does not wait for the timer.
  const storeAll = () => { for (const form of [...timers.keys()]) store(form); };
  window.addEventListener("pagehide", storeAll);
  document.addEventListener("visibilitychange", () => { if (document.hidden) storeAll(); });

  // A draft goes when the server took the form: it answers with a redirect, or with [data-done].
  // [data-unsaved] on the way there, and the form itself once more, say that it has not yet.
  const SENT = "sent-drafts";
  const sent = () => { try { return JSON.parse(sessionStorage.getItem(SENT) || "[]"); } catch { return []; } };
  const isAnswer = () => "answer" in document.body.dataset;
  function forgetTaken() {
    if (!sent().length || document.querySelector("[data-unsaved]")) return;
    const [navigation] = performance.getEntriesByType("navigation");
    const isTaken = document.querySelector("[data-done]") || (navigation && navigation.redirectCount > 0);
    if (isTaken) for (const key of sent()) forget(key);
    else if (isAnswer()) return;
    sessionStorage.removeItem(SENT);
  }
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("form[data-forget-drafts]")) {
      for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
    }
    if (!form.matches("form[data-draft]")) return;
    store(form);
    try { sessionStorage.setItem(SENT, JSON.stringify([...new Set([...sent(), keyOf(form)])])); } catch { /* As above. */ }
  });
  // Before HTMX looks at the answer: a refusal may move the whole page at once.
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    if (event.detail.xhr.status < 400) return;
    const form = event.target.closest("form[data-draft]");
    if (form) {
      store(form);
      sessionStorage.removeItem(SENT);
    }
    announce(`The server refused (${event.detail.xhr.status}). What you typed is kept.`);
  });
  function begin() {
    forgetTaken();
    for (const form of document.querySelectorAll("form[data-draft]")) {
      // The answer to a form holds what was sent: it is the newest draft.
      if (!isAnswer()) restore(form);
      else if (sent().length) keep(form);
    }
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
