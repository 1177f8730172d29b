"use strict";
// The page. What is searched for stands in its address; text from documents becomes text, never markup.
(() => {
  const at = (id) => document.getElementById(id);
  const query = at("query");
  const hits = at("hits");
  const TOPS = [5, 10, 20, 50, 100];
  const RANKED = { balance: "scores balanced by language", expand: "document expansion" };
  const COLOURS = 7; // the languages beyond share the eighth
  const BELOW = " › "; // between the headings above a passage
  const SNIPPET = 300; // characters of a passage that are shown
  let about = null; // what the server has: model, passages, languages
  let asking = null; // the request under way

  const element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const kept = (store, name, value) => {
    try {
      if (value !== undefined) window[store].setItem(name, value);
      return window[store].getItem(name);
    } catch {
      return null; // a browser may refuse to keep anything
    }
  };
  const named = (tag) => {
    if (tag === "und") return "not known";
    try {
      return new Intl.DisplayNames(["en"], { type: "language" }).of(tag);
    } catch {
      return tag; // not a tag that the browser knows
    }
  };
  const number = (value) => value.toLocaleString("en");
  const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
  const say = (text) => {
    at("said").textContent = text;
  };
  const complain = (text) => {
    at("problem").textContent = text;
    at("problem").hidden = !text;
  };

  // Light and dark: as the system has it, until the reader chooses.
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => {
    at("theme").textContent = isDark() ? "Light" : "Dark";
    at("theme").setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
  };
  const chosen = kept("localStorage", "theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
  at("theme").addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    kept("localStorage", "theme", theme);
    nameTheme();
  });
  dark.addEventListener("change", nameTheme);
  nameTheme();

  // Answers of the server, or an error in its own words.
  const call = async (path, options = {}) => {
    const token = kept("sessionStorage", "token");
    const headers = { ...options.headers, ...(token && { authorization: `Bearer ${token}` }) };
    const answer = await fetch(path, { ...options, headers });
    const content = await answer.json();
    if (answer.ok) return content;
    at("unlock").hidden = answer.status !== 401;
    if (answer.status === 401) at("token").focus();
    throw new Error(answer.status === 401 && !token ? "" : content.error.message);
  };
  const failed = (error) => {
    if (error.name === "AbortError") return;
    complain(error instanceof TypeError || error instanceof SyntaxError ? "The server does not answer." : error.message);
  };

  // The address holds what is searched for, and fills the form.
  const boxes = () => [...at("languages").querySelectorAll("input")];
  const languages = () => boxes().filter((box) => box.checked).map((box) => box.value);
  const write = () => {
    const found = new URLSearchParams();
    found.set("q", query.value.trim());
    for (const tag of languages()) found.append("language", tag);
    if (at("top_k").value !== "10") found.set("top_k", at("top_k").value);
    if (at("hybrid").checked !== about.ranking.hybrid) found.set("hybrid", at("hybrid").checked ? "1" : "0");
    return `?${found}`;
  };
  // What is no number goes to the server as it is, which says so.
  const numberOr = (text) => (Number.isFinite(Number(text)) ? Number(text) : text);
  const readAddress = () => {
    const found = new URLSearchParams(window.location.search);
    query.value = found.get("q") ?? "";
    const wanted = found.getAll("language");
    for (const box of boxes()) box.checked = wanted.includes(box.value);
    const topK = found.get("top_k") ?? String(Math.min(10, about.max_hits));
    const known = [...at("top_k").options].map((each) => each.value);
    if (!known.includes(topK)) at("top_k").append(element("option", {}, topK)); // the server says what is wrong with it
    at("top_k").value = topK;
    at("hybrid").checked = found.has("hybrid") ? found.get("hybrid") === "1" : about.ranking.hybrid;
    const unknown = wanted.filter((tag) => !(tag in about.languages));
    return unknown.length ? `No passage is in ${unknown.join(", ")}: that is left out of the languages.` : "";
  };

  const byCount = () => Object.entries(about.languages).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const isWeb = (url) => /^https?:\/\//i.test(url);
  // The sentences that fit, or the words of a longer one, without headings that are shown above them.
  const snippet = ({ text, heading }) => {
    const above = ["", ...heading.split(BELOW)];
    const lines = text.split("\n");
    while (lines.length > 1 && above.includes(lines[0].replace(/^#+/, "").trim())) lines.shift();
    const whole = lines.join("\n");
    if (whole.length <= SNIPPET) return whole;
    let end = 0;
    for (const granularity of ["sentence", "word", "grapheme"]) {
      const parts = [...new Intl.Segmenter(undefined, { granularity }).segment(whole.slice(0, SNIPPET))];
      if (end < SNIPPET / 2) end = Math.max(end, parts.at(-1).index); // the last part may be cut
    }
    return `${whole.slice(0, end).trimEnd()} …`;
  };
  // A language has its colour whatever is found, so that two searches can be compared.
  const slotOf = (tag) => Math.min(byCount().findIndex(([each]) => each === tag), COLOURS);
  const slots = (found) => {
    const counts = new Map();
    for (const { language: tag } of found) counts.set(tag, (counts.get(tag) ?? 0) + 1);
    return [...counts].map(([tag, count]) => ({ tag, count, slot: slotOf(tag) })).sort((a, b) => b.count - a.count);
  };
  const showShare = (found) => {
    const shares = slots(found);
    const worded = shares.map(({ tag, count }) => `${named(tag)} ${count}`);
    at("share").setAttribute("aria-label", `Languages among the hits: ${worded.join(", ")}`);
    at("share").replaceChildren(
      ...shares.map(({ count, slot }) => {
        const part = element("span", { class: `s${slot}` });
        part.style.flex = `${count} 0 0`;
        return part;
      }),
    );
    at("legend").replaceChildren(
      ...shares.map(({ count, slot }, i) => {
        const share = element("span", { class: "count" }, ` (${Math.round((100 * count) / found.length)} %)`);
        return element("li", { class: `s${slot}` }, worded[i], share);
      }),
    );
    for (const id of ["share", "legend"]) at(id).hidden = !found.length;
    return shares.length;
  };
  const showHit = (hit, i) => {
    const tags = hit.languages.map((tag) => {
      const version = hit.translations.find(({ language, url }) => language === tag && isWeb(url));
      const link = version && tag !== hit.language ? { href: version.url, hreflang: tag } : {};
      const name = element("abbr", { title: named(tag) }, tag);
      return element(link.href ? "a" : "span", { class: `tag s${slotOf(tag)}`, ...link }, name);
    });
    const score = element("span", { class: "score" }, hit.score.toFixed(3));
    const rank = element("span", { class: "rank" }, `${i + 1}.`);
    const place = hit.anchor ? `${hit.file}#${hit.anchor}` : `${hit.file}:${hit.line}`;
    const file = element("span", { class: "file", dir: "auto" }, place);
    const title = hit.heading.split(BELOW)[0] || hit.file.split("/").at(-1);
    const spoken = { dir: "auto", ...(hit.language === "und" ? {} : { lang: hit.language }) };
    return element(
      "li",
      { tabindex: i ? "-1" : "0" },
      element("p", { class: "where" }, rank, ...tags, score, file),
      element("h2", { class: "title", ...spoken }, isWeb(hit.url) ? element("a", { href: hit.url }, title) : title),
      ...(hit.heading.includes(BELOW) ? [element("p", { class: "heading", ...spoken }, hit.heading)] : []),
      element("p", { class: "passage", ...spoken }, snippet(hit)),
    );
  };
  const show = (found, seconds, cut) => {
    hits.replaceChildren(...found.map(showHit));
    const count = showShare(found);
    const told = found.length ? `${plural(found.length, "hit")} in ${plural(count, "language")}` : "No passage was found";
    const shortened = cut ? " The query is too long: its end was not read." : "";
    at("summary").textContent = `${told}, ${(1000 * seconds).toFixed(0)} ms.${shortened}`;
    say(`${told}.${shortened}`);
  };
  const clear = () => {
    hits.replaceChildren();
    showShare([]);
    at("summary").textContent = "";
  };

  const search = async (note = "") => {
    asking?.abort();
    const mine = (asking = new AbortController());
    const text = query.value.trim();
    complain(note);
    document.title = text ? `${text} – metasearch` : "metasearch";
    if (!text) return clear();
    const content = { query: text, top_k: numberOr(at("top_k").value), languages: languages(), hybrid: at("hybrid").checked };
    const headers = { "content-type": "application/json" };
    const began = performance.now();
    at("results").classList.add("busy");
    try {
      const options = { method: "POST", headers, body: JSON.stringify(content), signal: mine.signal };
      const answer = await call("search", options);
      show(answer.results[0].hits, (performance.now() - began) / 1000, answer.truncated.length > 0);
    } catch (error) {
      if (error.name !== "AbortError") clear();
      failed(error);
    } finally {
      if (asking === mine) at("results").classList.remove("busy");
    }
  };
  const ask = () => {
    if (!about) return;
    const address = query.value.trim() ? write() : window.location.pathname;
    if (address !== window.location.search) window.history.pushState(null, "", address);
    search();
  };

  // Keys: one stop of the tab key for all hits, arrows between them.
  const go = (to) => {
    const items = [...hits.children];
    const next = items[Math.min(Math.max(to, 0), items.length - 1)];
    if (!next) return;
    for (const item of items) item.tabIndex = item === next ? 0 : -1;
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    const active = document.activeElement;
    const typing = active.matches("input:not([type=checkbox]), select");
    const now = [...hits.children].indexOf(active);
    const { key } = event;
    const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: Infinity }[key];
    if (key === "/" && !typing) {
      query.focus();
      query.select();
    } else if (key === "Escape" && now >= 0) query.focus();
    else if (key === "ArrowUp" && now === 0) query.focus();
    else if (key === "Enter" && now >= 0 && active.querySelector(".title a")) active.querySelector(".title a").click();
    else if (now >= 0 && to !== undefined) go(to);
    else if (key === "ArrowDown" && (active === query || active === document.body) && hits.children.length) go(0);
    else return;
    event.preventDefault();
  });
  hits.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item && !event.target.closest("a") && !String(window.getSelection())) go([...hits.children].indexOf(item));
  });

  at("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  for (const id of ["languages", "top_k", "hybrid"]) at(id).addEventListener("change", () => query.value.trim() && ask());
  at("unlock").addEventListener("submit", (event) => {
    event.preventDefault();
    kept("sessionStorage", "token", at("token").value.trim());
    begin();
  });
  window.addEventListener("popstate", () => {
    if (!about) return;
    search(readAddress());
  });

  const fill = () => {
    const tags = byCount();
    at("languages").replaceChildren(
      ...tags.map(([tag, count]) => {
        const box = element("input", { type: "checkbox", name: "language", value: tag });
        return element("label", {}, box, named(tag), element("span", { class: "count" }, number(count)));
      }),
    );
    at("filter").hidden = tags.length < 2;
    const tops = TOPS.filter((topK) => topK <= about.max_hits);
    at("top_k").replaceChildren(...(tops.length ? tops : [about.max_hits]).map((topK) => element("option", {}, String(topK))));
    const ranked = Object.entries(RANKED).filter(([name]) => about.ranking[name]).map(([, word]) => `, ${word}`);
    const size = `${plural(about.passages, "passage")} in ${plural(tags.length, "language")}`;
    at("facts").textContent = `${size}, model ${about.model}${ranked.join("")}`;
  };
  const begin = async () => {
    try {
      about = await call("index");
    } catch (error) {
      return failed(error);
    }
    at("unlock").hidden = true;
    complain("");
    fill();
    const note = readAddress();
    if (query.value) await search(note);
    else query.focus();
  };
  begin();
})();
