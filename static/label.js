// The page of an item: drafts that lose nothing, a lease that is kept, active time, and keys.
// Without this script the form works as it is; with it nothing else is needed.
"use strict";

(() => {
  const person = document.body.dataset.person || "";
  const form = () => document.querySelector("form[data-label]");
  const read = (key) => { try { return JSON.parse(localStorage.getItem(key) || "null"); } catch { return null; } };
  const write = (key, value) => { try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* Full: the server keeps it. */ } };
  const forget = (key) => { try { localStorage.removeItem(key); } catch { /* As above. */ } };

  // --- Keys, as this person set them.
  const KEYS = `keys:${person}`;
  const DEFAULTS = { skip: "s", flag: "f", undo: "u", guideline: "g", help: "?", previous: "ArrowLeft", next: "ArrowRight", direct: false };
  const settings = () => ({ ...DEFAULTS, ...(read(KEYS) || {}) });
  const NAMES = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", " ": "Space" };
  const nameOf = (key) => NAMES[key] || (key.length === 1 ? key.toUpperCase() : key);
  function showKeys() {
    const mine = settings();
    for (const mark of document.querySelectorAll("[data-key-of]")) mark.textContent = nameOf(mine[mark.dataset.keyOf]);
    for (const mark of document.querySelectorAll("kbd.hotkey")) mark.hidden = false;
    for (const button of document.querySelectorAll("[data-without-script]")) button.hidden = true;
  }

  // --- Active time: while the window has the focus and somebody did something of late.
  const IDLE_AFTER = 30000;
  let lastAct = 0;
  let lastTick = Date.now();
  let active = 0;
  const isActive = (now) => document.hasFocus() && !document.hidden && now - lastAct < IDLE_AFTER;
  function tick() {
    const now = Date.now();
    if (isActive(now)) active += Math.min(now - lastTick, 2000);
    lastTick = now;
    const field = form() && form().elements.active_milliseconds;
    if (field) field.value = String(Math.round(active));
  }
  const acted = () => { tick(); lastAct = Date.now(); };
  for (const kind of ["keydown", "pointerdown", "pointermove", "wheel", "scroll", "input", "focus"]) {
    window.addEventListener(kind, acted, { capture: true, passive: true });
  }

  // --- Drafts. Every change is in the browser's store at once, and at the server soon after: the
  // higher sequence wins there, so that it does not matter which save arrives last.
  const SAVE_AFTER = 400;
  const RETRY_LONGEST = 15000;
  let sequence = 0;
  let savedSequence = 0;
  let saving = null;
  let timer = 0;
  let retryAfter = 1000;
  let isOver = false; // The session ended: saving again is of no use before a sign-in.
  const storeKey = (it) => `draft:label:${person}:${it.dataset.store}`; // Signing out forgets what begins so.
  const NOT_KEPT = new Set(["csrfmiddlewaretoken", "request_key", "undo_key", "sequence", "fence"]);
  const fieldsOf = (it) => [...new FormData(it)].filter(([name]) => !NOT_KEPT.has(name));
  function say(text, isUnsaved) {
    const place = document.querySelector("[data-save-state]");
    if (!place) return;
    if (place.textContent !== text) place.textContent = text;
    place.classList.toggle("label-unsaved", Boolean(isUnsaved));
  }
  function changed() {
    const it = form();
    if (!it) return;
    tick();
    sequence = Math.max(Date.now(), sequence + 1);
    it.elements.sequence.value = String(sequence);
    write(storeKey(it), { sequence, fields: fieldsOf(it) });
    say(navigator.onLine ? "Not saved yet …" : "Not saved at the server: there is no connection. It is kept in this browser.", true);
    clearTimeout(timer);
    timer = setTimeout(save, SAVE_AFTER);
  }
  async function save() {
    clearTimeout(timer);
    const it = form();
    if (!it || saving || sequence <= savedSequence || isOver) return;
    tick();
    const sent = sequence;
    const body = new FormData(it);
    body.set("sequence", String(sent));
    saving = new AbortController();
    const cutOff = setTimeout(() => saving && saving.abort(), 10000);
    try {
      const reply = await fetch(it.dataset.save, {
        method: "POST", body, signal: saving.signal,
        headers: { Accept: "application/json", "HX-Request": "true", "X-CSRFToken": it.elements.csrfmiddlewaretoken.value },
      });
      if (form() !== it) return;
      if (reply.status === 401 || reply.status === 403) return ended();
      if (!reply.ok) return say(`The server refused to save (${reply.status}). It is kept in this browser.`, true);
      const { held } = await reply.json();
      savedSequence = Math.max(savedSequence, sent);
      retryAfter = 1000;
      if (!held) say("Your draft is saved, but the item went to somebody else. Submit to see how to go on.", true);
      else if (sequence === sent) say("Your draft is saved.");
    } catch {
      if (form() !== it) return;
      say("Not saved at the server: there is no connection. It is kept in this browser, and tried again.", true);
      timer = setTimeout(save, retryAfter);
      retryAfter = Math.min(retryAfter * 2, RETRY_LONGEST);
    } finally {
      clearTimeout(cutOff);
      saving = null;
      if (form() === it && sequence > savedSequence && sequence !== sent) timer = setTimeout(save, SAVE_AFTER);
    }
  }
  function ended() {
    isOver = true;
    say("Your session has ended: sign in in another tab, or submit to get there. What you typed is kept in this browser.", true);
  }
  window.addEventListener("online", () => { retryAfter = 1000; isOver = false; save(); });
  const flush = () => { if (sequence > savedSequence) save(); };
  document.addEventListener("visibilitychange", () => { if (document.hidden) flush(); else isOver = false; });
  window.addEventListener("pagehide", flush);
  document.addEventListener("input", (event) => { if (event.target.form && event.target.form === form()) changed(); });
  document.addEventListener("change", (event) => {
    if (event.target.form && event.target.form === form() && ["radio", "checkbox"].includes(event.target.type)) changed();
  });
  function restore(it) {
    const kept = read(storeKey(it));
    sequence = savedSequence = Number(it.dataset.sequence) || 0;
    if (!kept || kept.sequence <= sequence || it.querySelector("[role=alert]")) return;
    const values = new Map();
    for (const [name, value] of kept.fields) values.set(name, [...(values.get(name) || []), value]);
    for (const field of it.elements) {
      if (!field.name || field.type === "hidden" || field.type === "submit") continue;
      const given = values.get(field.name) || [];
      if (field.type === "radio" || field.type === "checkbox") field.checked = given.includes(field.value);
      else field.value = given[0] ?? "";
    }
    changed();
  }

  // --- The lease: a sign of life while somebody is at it.
  let lastBeat = Date.now();
  async function beat() {
    const it = form();
    if (!it) return;
    const every = Math.min(Number(it.dataset.lease) * 1000 / 3, 60000);
    const now = Date.now();
    if (now - lastBeat < every || now - lastAct > Number(it.dataset.lease) * 1000) return;
    lastBeat = now;
    try {
      const reply = await fetch(it.dataset.beat, {
        method: "POST", body: new FormData(it),
        headers: { Accept: "application/json", "HX-Request": "true", "X-CSRFToken": it.elements.csrfmiddlewaretoken.value },
      });
      if (form() !== it) return;
      if (reply.status === 409) say("This item went to somebody else. Submit to see how to go on: nothing is lost.", true);
      if (reply.status === 401) ended();
    } catch { /* The draft says that there is no connection. */ }
  }
  setInterval(() => { tick(); beat(); sumUp(); }, 1000);

  // --- Beliefs: their sum in words; with two options the other one is what is left.
  const beliefFields = () => [...document.querySelectorAll("[data-beliefs] input")];
  const numberIn = (field) => { const text = field.value.trim().replace(",", "."); return text === "" ? null : Number(text); };
  function sumUp() {
    const place = document.querySelector("[data-belief-sum]");
    if (!place) return;
    const numbers = beliefFields().map(numberIn);
    const total = numbers.reduce((sum, one) => sum + (one || 0), 0);
    const text = numbers.every((one) => one === null) ? "" : `Sum: ${Math.round(total * 100) / 100} of 100.`;
    if (place.textContent !== text) place.textContent = text;
  }
  document.addEventListener("input", (event) => {
    const fields = beliefFields();
    if (!fields.includes(event.target)) return;
    const number = numberIn(event.target);
    if (fields.length === 2 && number !== null && number >= 0 && number <= 100) {
      fields.find((field) => field !== event.target).value = String(Math.round((100 - number) * 100) / 100);
    }
    sumUp();
  });

  // --- Choosing by key.
  const groups = () => [...document.querySelectorAll("[data-choices]")];
  const radios = (group) => [...group.querySelectorAll("input[type=radio]")];
  function currentGroup() {
    const all = groups();
    return all.find((group) => group.contains(document.activeElement)) ||
      all.find((group) => !radios(group).some((radio) => radio.checked)) || all[0];
  }
  function choose(radio, isSilent) {
    if (!radio) return;
    radio.checked = true;
    radio.focus({ preventScroll: isSilent });
    changed();
  }
  function chooseNumber(number) {
    const beliefs = beliefFields();
    if (beliefs.length) {
      if (beliefs[number - 1]) { beliefs[number - 1].focus(); beliefs[number - 1].select(); }
      return Boolean(beliefs[number - 1]);
    }
    const group = currentGroup();
    const radio = group && radios(group)[number - 1];
    if (!radio) return false;
    choose(radio);
    const all = groups();
    const following = all[all.indexOf(group) + 1];
    if (following) radios(following)[0].focus();
    else if ("direct" in form().dataset && settings().direct) submitNow();
    return true;
  }
  function move(step) {
    const group = currentGroup();
    if (!group) return false;
    const all = radios(group);
    const at = all.findIndex((radio) => radio.checked);
    const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1);
    choose(all[next]);
    return true;
  }
  const submitNow = () => { const button = document.getElementById("submit"); if (button) button.click(); return Boolean(button); };
  function openNote() {
    const box = document.getElementById("note-box");
    if (!box) return false;
    box.open = true;
    document.getElementById("note").focus();
    return true;
  }
  const press = (name) => { const button = document.querySelector(`button[data-hotkey="${name}"]`); if (button) button.click(); return Boolean(button); };

  // --- Dialogs: guideline and keys. Their links lead to pages of the same.
  async function openDialog(link) {
    const dialog = document.getElementById(link.dataset.dialog);
    if (!dialog || !dialog.showModal) { location.assign(link.href); return; }
    dialog.showModal();
    const body = dialog.querySelector("[data-from]");
    if (!body || "loaded" in body.dataset) return;
    try {
      const reply = await fetch(body.dataset.from, { headers: { "HX-Request": "true" } });
      if (!reply.ok) throw new Error(String(reply.status));
      const parsed = new DOMParser().parseFromString(await reply.text(), "text/html");
      body.replaceChildren(...parsed.body.childNodes);
      body.dataset.loaded = "";
    } catch { body.textContent = "The guideline could not be loaded. Close this and try again."; }
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-dialog]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
      event.preventDefault();
      openDialog(link);
    }
    if (event.target.closest("[data-clear]") && form()) {
      event.preventDefault();
      for (const field of form().elements) {
        if (field.type === "radio" || (field.type === "checkbox" && field.name === "reason")) field.checked = false;
      }
      for (const field of beliefFields()) field.value = "";
      sumUp();
      changed();
      focusHeading();
    }
  });

  const TYPING = "input:not([type=radio]):not([type=checkbox]):not([type=submit]):not([type=button]), textarea, select, [contenteditable]";
  const INTERACTIVE = "a, button, summary, label, input, textarea, select, [contenteditable]";
  const isInert = (event) =>
    event.defaultPrevented || event.isComposing || event.keyCode === 229 ||
    event.ctrlKey || event.metaKey || event.altKey || event.repeat ||
    document.querySelector("dialog[open]") || event.target.closest(TYPING);
  document.addEventListener("keydown", (event) => {
    if (!document.getElementById("work") || isInert(event)) return;
    const mine = settings();
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (event.shiftKey && /^[a-z0-9]$/.test(key)) return;
    const isOnRadio = event.target.matches("input[type=radio]");
    let done = false;
    if (/^[1-9]$/.test(key) && form()) done = chooseNumber(Number(key));
    else if (key === "Enter" && form() && (isOnRadio || !event.target.closest(INTERACTIVE))) done = submitNow();
    else if (key === "Enter" && !form() && !event.target.closest(INTERACTIVE)) {
      const close = document.getElementById("close-batch");
      if (close) { close.focus(); done = true; }
    }
    else if (key === mine.next && form()) done = move(1);
    else if (key === mine.previous && form()) done = move(-1);
    else if (key === mine.skip) done = press("skip");
    else if (key === mine.undo) done = press("undo");
    else if (key === mine.flag) done = openNote();
    else if (key === mine.guideline || key === mine.help) {
      openDialog(document.querySelector(`a[data-hotkey="${key === mine.help ? "help" : "guideline"}"]`));
      done = true;
    }
    if (done) event.preventDefault();
  });

  // --- Swaps: what was refused is shown as well; the focus goes to the heading of what is next.
  function focusHeading() {
    const fault = document.querySelector("#work [role=alert] a");
    const heading = fault || document.querySelector("#work [data-focus]");
    if (heading) heading.focus();
  }
  document.addEventListener("htmx:configRequest", (event) => {
    const it = form();
    if (!it || !it.contains(event.detail.elt)) return;
    tick();
    clearTimeout(timer);
    if (saving) saving.abort();
    sequence = Math.max(Date.now(), sequence + 1);
    event.detail.parameters.set
      ? event.detail.parameters.set("sequence", String(sequence))
      : (event.detail.parameters.sequence = String(sequence));
    write(storeKey(it), { sequence, fields: fieldsOf(it) });
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target.id !== "work") return;
    if ([400, 409].includes(event.detail.xhr.status)) {
      event.detail.shouldSwap = true;
      event.detail.isError = false;
    }
  });
  document.addEventListener("htmx:oobAfterSwap", showKeys);
  let leaving = "";
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target.id === "work" && form()) leaving = storeKey(form());
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (!document.getElementById("work")) return;
    // What the server answered holds what was sent: the browser's own copy has done its work.
    if (leaving) forget(leaving);
    leaving = "";
    begin();
    focusHeading();
  });
  for (const failure of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(failure, () => {
      say("Not sent: there is no connection. It is kept in this browser: press the button again.", true);
      if (form()) { savedSequence = Math.min(savedSequence, sequence - 1); timer = setTimeout(save, retryAfter); }
    });
  }

  function begin() {
    showKeys();
    const it = form();
    retryAfter = 1000;
    isOver = false;
    active = it ? Number(it.elements.active_milliseconds.value) || 0 : 0;
    lastTick = lastAct = Date.now();
    if (!it) return;
    if (!Number(it.dataset.sequence)) say("Nothing typed yet.");
    restore(it);
    sumUp();
  }

  // --- The page of keys: each is set by pressing it in its field.
  function keysPage() {
    const table = document.querySelector("[data-keys]");
    if (!table) return;
    const mine = settings();
    const note = document.getElementById("keys-said");
    for (const field of table.querySelectorAll("input[data-key]")) {
      field.disabled = false;
      field.value = nameOf(mine[field.dataset.key]);
      field.addEventListener("keydown", (event) => {
        if (["Tab", "Escape", "Shift", "Control", "Alt", "Meta"].includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
        const now = settings();
        const taken = Object.keys(DEFAULTS).find((name) => name !== field.dataset.key && now[name] === key);
        if (taken || /^[1-9]$/.test(key) || key === "Enter") {
          note.textContent = `${nameOf(key)} is taken. Nothing changed.`;
          return;
        }
        write(KEYS, { ...now, [field.dataset.key]: key });
        field.value = nameOf(key);
        note.textContent = `${nameOf(key)} is set.`;
      });
    }
    const direct = document.getElementById("direct");
    direct.disabled = false;
    direct.checked = mine.direct;
    direct.addEventListener("change", () => {
      write(KEYS, { ...settings(), direct: direct.checked });
      note.textContent = direct.checked ? "A digit submits by itself." : "A digit chooses; Enter submits.";
    });
    const reset = document.getElementById("keys-reset");
    reset.hidden = false;
    reset.addEventListener("click", () => { forget(KEYS); keysPageAgain(); note.textContent = "The keys are as they came."; });
    function keysPageAgain() {
      const now = settings();
      for (const field of table.querySelectorAll("input[data-key]")) field.value = nameOf(now[field.dataset.key]);
      direct.checked = now.direct;
    }
  }
  begin();
  keysPage();
})();
