// What keeps people out of a page that needs no pointer and no sharp eyes: fields without a label, links and
// buttons without a name, text that stands out too little (WCAG AA: 4.5 to 1), a page without a heading,
// a table without headings, a picture without a name. Gives sentences, none for a page that is well.
() => {
  const found = [];
  const shown = (element) => element.outerHTML.slice(0, 80);
  const named = (element) => element.textContent.trim() || element.getAttribute("aria-label");
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (!field.labels.length && !field.getAttribute("aria-label")) found.push(`no label: ${shown(field)}`);
  }
  for (const act of document.querySelectorAll("button, a[href], summary")) {
    if (!named(act)) found.push(`no name: ${shown(act)}`);
  }
  for (const table of document.querySelectorAll("table")) {
    if (!table.querySelector("th[scope]")) found.push(`no headings: ${shown(table)}`);
  }
  for (const picture of document.querySelectorAll("svg, img")) {
    if (!["role", "aria-hidden", "aria-label", "alt"].some((name) => picture.hasAttribute(name))) {
      found.push(`no name: ${shown(picture)}`);
    }
  }
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (!document.querySelector("main")) found.push("no main");
  if (!document.documentElement.lang) found.push("no language");

  const parts = (colour) => (colour.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  for (const element of document.querySelectorAll("body *:not(svg *)")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility()) continue;
    const lights = [light(parts(getComputedStyle(element).color)), light(behind(element))].sort((a, b) => b - a);
    const contrast = (lights[0] + 0.05) / (lights[1] + 0.05);
    if (contrast < 4.5) found.push(`contrast ${contrast.toFixed(2)}: ${shown(element)}`);
  }
  return found;
};
