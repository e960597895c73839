"use strict";
{
  const found = (id) => document.getElementById(id);
  // Messengers hand the signed data over in the fragment, which no server is sent.
  const fragment = new URLSearchParams(location.hash.slice(1));
  const initData = fragment.get("tgWebAppData") || fragment.get("WebAppData");
  const query = new URLSearchParams(location.search);

  const tell = (what) => { found("told").textContent = found("told").dataset[what]; };

  const busy = (is) => { found("yes").disabled = found("cancel").disabled = is; };

  const reason = (status, code) => {
    if (status === 400) return "stale";
    if (status === 404) return "gone";
    if (status === 409) return code === "auth_mini_app_used" ? "used" : "unstarted";
    return "failed";
  };

  const signIn = async () => {
    const body = { init_data: initData, state: query.get("state") || "" };
    if (query.get("channel")) body.channel = query.get("channel");
    const answer = await fetch(location.pathname, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      credentials: "omit",
    });
    const said = await answer.json();
    if (answer.ok) {
      location.replace(said.redirect);
      return;
    }
    const what = reason(answer.status, said.code);
    tell(what);
    if (what === "failed") busy(false);
    else found("question").hidden = true;
  };

  found("yes").addEventListener("click", () => {
    busy(true);
    tell("working");
    signIn().catch(() => {
      tell("failed");
      busy(false);
    });
  });

  found("cancel").addEventListener("click", () => {
    found("question").hidden = true;
    tell("denied");
  });

  found("question").hidden = !initData;
  found("outside").hidden = Boolean(initData);
}
