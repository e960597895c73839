// A button that leads to the hosted sign-in page, where this script stands:
//
//   <script src="https://.../login/button.js" data-slug="shop" data-state="..." async></script>
//
// Attributes: data-slug (needed), data-state, data-lang (en, ru, or another that the page is there in), data-channel, data-theme (light or
// dark; else what the visitor's system has). From outside its look is changed by ::part(button).
(() => {
  const WORDS = {{ words | tojson }};
  const STYLE = `
    :host { display: inline-block; }
    a {
      display: inline-flex; align-items: center; justify-content: center; gap: 10px;
      box-sizing: border-box; min-height: 44px; padding: 10px 20px; border-radius: 12px;
      background: #1f7a66; color: #fff; text-decoration: none; text-align: center;
      font: 600 16px/1.3 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
    }
    a:hover { background: #17604f; }
    a:focus-visible { outline: 3px solid #1f7a66; outline-offset: 3px; }
    svg { flex: none; width: 22px; height: 22px; fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round; }
    a.dark { background: #56c3a4; color: #06251c; }
    a.dark:hover { background: #7ad6bb; }
    a.dark:focus-visible { outline-color: #56c3a4; }
    @media (prefers-color-scheme: dark) {
      a:not(.light) { background: #56c3a4; color: #06251c; }
      a:not(.light):hover { background: #7ad6bb; }
      a:not(.light):focus-visible { outline-color: #56c3a4; }
    }
    @media (forced-colors: active) { a { border: 1px solid; } }`;
  const CHAT = "M5 5h14a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2h-7l-5 4v-4H5a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2z";
  const SVG = "http://www.w3.org/2000/svg";

  const script = document.currentScript;
  const { slug = "", state, channel, theme, lang = document.documentElement.lang || navigator.language } = script.dataset;
  if (!/^[a-z0-9-]{3,48}$/.test(slug)) {
    console.error("msgsvc: button.js needs data-slug, the slug of a static sign-in link");
    return;
  }
  const short = lang.slice(0, 2).toLowerCase();
  const known = [lang, short].find((tag) => tag in WORDS) ?? "en";

  const address = new URL(slug, script.src);
  if (state) address.searchParams.set("state", state);
  if (channel) address.searchParams.set("channel", channel);
  address.searchParams.set("lang", known);

  const link = document.createElement("a");
  link.part = "button";
  link.href = address.href;
  link.lang = known;
  if (theme === "dark" || theme === "light") link.className = theme;
  const icon = document.createElementNS(SVG, "svg");
  icon.setAttribute("viewBox", "0 0 24 24");
  icon.setAttribute("aria-hidden", "true");
  icon.append(document.createElementNS(SVG, "path"));
  icon.firstChild.setAttribute("d", CHAT);
  const text = document.createElement("span");
  text.textContent = WORDS[known];
  link.append(icon, text);

  const host = document.createElement("msgsvc-sign-in");
  const root = host.attachShadow({ mode: "open" });
  // A style sheet made by a script passes a site's policy that allows no styles written into the page.
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  root.adoptedStyleSheets = [sheet];
  root.append(link);
  script.after(host);
})();
