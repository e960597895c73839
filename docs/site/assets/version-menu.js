// The choice of a version, where the site has several. Their list, versions.js, is beside their folders and loaded as a
// script, so that older versions show newer ones, and pages that are opened as files show it too.
(() => {
  const place = document.querySelector(".site-versions");
  if (!place) return;
  const { base, up, here, label, outdated } = place.dataset;
  // The page for addresses that are not there has a base that begins, and ends, with a slash.
  const version = new URL(up || ".", new URL(base.endsWith("/") ? base : `${base}/`, location.href));
  const root = new URL("../", version);
  const name = decodeURIComponent(version.pathname.split("/").at(-2));

  const address = ({ name: other, pages }) =>
    new URL(`${other}/${pages.includes(here) ? here : "index.html"}`, root).href;

  const element = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  const show = () => {
    const { versions, preferred } = window.msgsvcVersions;
    const current = versions.find((each) => each.name === name);
    if (!current) return;
    const items = versions.map((each) => {
      const link = element("a", { href: address(each) }, each.title);
      if (each === current) link.setAttribute("aria-current", "true");
      return element("li", {}, link);
    });
    const summary = element("summary", {}, current.title);
    summary.setAttribute("aria-label", `${label}: ${current.title}`);
    const menu = element("details", {}, summary, element("ul", {}, ...items));
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      menu.open = false;
      summary.focus();
    });
    document.addEventListener("click", (event) => {
      if (!menu.contains(event.target)) menu.open = false;
    });
    place.replaceChildren(menu);
    place.hidden = versions.length < 2;
    if (current.isOutdated) {
      const newer = versions.find((each) => each.name === preferred);
      const link = element("a", { href: address(newer) }, newer.title);
      const text = element("div", { className: "md-banner__inner md-grid md-typeset" }, outdated, " ", link, ".");
      document.querySelector("header").before(element("aside", { className: "md-banner site-outdated" }, text));
    }
  };

  document.head.append(element("script", { src: new URL("versions.js", root).href, onload: show }));
})();
