// Two comforts; every page works without them. (1) The local time of an instant on hover and focus.
// (2) A region marked data-refresh="seconds" is fetched anew, its changed parts alone are replaced, and
// focus, opened details, scroll and selection stay. It rests while the tab is hidden or a form is in use.
"use strict";

function showLocalTime(event) {
  const time = event.target.closest && event.target.closest("time[datetime]");
  if (!time || time.dataset.local) return;
  const at = new Date(time.dateTime);
  if (isNaN(at)) return;
  time.dataset.local = "1";
  time.title = `${time.title} · local ${at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" })}`;
}
document.addEventListener("mouseover", showLocalTime);
document.addEventListener("focusin", (event) => {
  for (const time of event.target.querySelectorAll ? event.target.querySelectorAll("time[datetime]") : []) {
    showLocalTime({ target: time });
  }
});

// Where an element stands within a part, so that its successor can be found.
function pathOf(element, part) {
  const path = [];
  for (let at = element; at !== part; at = at.parentElement) {
    path.unshift([...at.parentElement.children].indexOf(at));
  }
  return path;
}
function follow(path, part) {
  return path.reduce((at, index) => at && at.children[index], part);
}

function replace(old, fresh) {
  const active = old.contains(document.activeElement) ? document.activeElement : null;
  const path = active ? pathOf(active, old) : null;
  const opened = [...old.querySelectorAll("details[open]")].map((details) => pathOf(details, old));
  for (const place of opened) {
    const details = follow(place, fresh);
    if (details && details.tagName === "DETAILS") details.open = true;
  }
  old.replaceWith(fresh);
  const next = path && follow(path, fresh);
  if (next && next.tagName === active.tagName) next.focus({ preventScroll: true });
}

function merge(region, incoming) {
  const known = new Map([...region.children].map((part) => [part.id, part]));
  let place = region.firstElementChild;
  for (const fresh of [...incoming.children]) {
    const old = known.get(fresh.id);
    known.delete(fresh.id);
    const stays = old && old.outerHTML === fresh.outerHTML;
    if (old && place === old) place = old.nextElementSibling;
    if (old && !stays) replace(old, fresh);
    else if (!old) region.insertBefore(fresh, place);
  }
  for (const gone of known.values()) gone.remove();
  region.dataset.refresh = incoming.dataset.refresh || "";
}

function inUse(region) {
  const selection = document.getSelection();
  const field = document.activeElement;
  return (selection && !selection.isCollapsed && region.contains(selection.anchorNode))
    || (field && region.contains(field) && /^(INPUT|SELECT|TEXTAREA)$/.test(field.tagName));
}

async function refresh(region, say) {
  if (document.hidden || inUse(region)) return;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
    if (answer.redirected || !answer.ok) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const incoming = page.getElementById(region.id);
    if (!incoming) throw new Error("no region");
    const [x, y] = [scrollX, scrollY];
    merge(region, incoming);
    scrollTo(x, y);
    document.title = page.title;
    say("");
  } catch {
    say("Not refreshed: the service did not answer, or you are signed out. Reload the page.");
  }
}

for (const region of document.querySelectorAll("[data-refresh]")) {
  const note = document.createElement("p");
  note.className = "flash bad stale";
  note.setAttribute("role", "status");
  note.hidden = true;
  region.before(note);
  const say = (text) => { note.textContent = text; note.hidden = !text; };
  let last = Date.now();
  let busy = false;
  const look = async () => {
    const every = Number(region.dataset.refresh) * 1000;
    if (busy || !every || document.hidden || Date.now() - last < every) return;
    busy = true;
    await refresh(region, say);
    last = Date.now();
    busy = false;
  };
  setInterval(look, 1000);
  document.addEventListener("visibilitychange", look);
  region.classList.add("refreshing");
}
