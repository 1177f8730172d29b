"use strict";
// The explorer: a list of questions, and what two learners ranked where. Text from data becomes text, never markup.
(() => {
  const at = (name) => document.getElementById(`explorer-${name}`);
  const source = at("data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const list = at("list");
  const tabs = at("tabs");
  let pair = data.pairs[0];
  let shown = []; // the questions that the filter lets through, indices into pair.questions
  let chosen = 0; // among pair.questions
  let language = null;

  const element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const worded = (index, tag = "span") => {
    const [spoken, text] = data.texts[index];
    return element(tag, { lang: spoken, dir: "auto" }, text);
  };
  const named = (code) => {
    try {
      return new Intl.DisplayNames(["en"], { type: "language" }).of(code);
    } catch {
      return code; // not a code that the browser knows
    }
  };
  const spokenIn = (version) => data.texts[version.text][0];
  const percent = (value) => (100 * value).toFixed(1);
  const signed = (value) => {
    const digits = percent(Math.abs(value));
    return Number(digits) === 0 ? digits : `${value < 0 ? "−" : "+"}${digits}`;
  };
  const change = ([before, after]) => signed(after - before);
  const versionOf = (question) => question.versions.find((each) => spokenIn(each) === language) ?? question.versions[0];
  const say = (text) => {
    at("said").textContent = text;
  };

  // One tab stop for a row or column of items: arrows, Home and End move within it, and moving chooses.
  const rove = (container, [back, on], choose) => {
    container.addEventListener("keydown", (event) => {
      const items = [...container.children];
      const now = items.indexOf(document.activeElement);
      const to = { [back]: now - 1, [on]: now + 1, Home: 0, End: items.length - 1 }[event.key];
      if (to === undefined || now < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      const next = items[Math.min(Math.max(to, 0), items.length - 1)];
      if (next === items[now]) return;
      choose(next);
      next.focus();
    });
    container.addEventListener("click", (event) => {
      const item = [...container.children].find((each) => each.contains(event.target));
      if (!item) return;
      choose(item);
      item.focus();
    });
  };
  const mark = (container, isChosen) => {
    for (const item of container.children) {
      const is = isChosen(item);
      item.setAttribute("aria-selected", String(is));
      item.tabIndex = is ? 0 : -1;
    }
  };

  const fillList = () => {
    list.replaceChildren(
      ...shown.map((index) => {
        const question = pair.questions[index];
        const values = element("span", { class: "explorer-change" }, change(question.values));
        return element("div", { role: "option", "data-index": index }, worded(versionOf(question).text), values);
      }),
    );
    list.hidden = shown.length === 0;
    at("detail").hidden = shown.length === 0;
    at("none").hidden = shown.length > 0;
    mark(list, (item) => Number(item.dataset.index) === chosen);
  };

  const line = ([rank, text, relevant, score]) => {
    const sign = relevant ? [element("span", { "aria-hidden": "true" }, "✓ "), hiddenText("relevant, ")] : [];
    const spoken = data.texts[text][0];
    return element(
      "tr",
      relevant ? { class: "explorer-relevant" } : {},
      element("th", { scope: "row" }, ...sign, String(rank)),
      element("td", {}, element("abbr", { title: named(spoken) }, spoken)),
      worded(text, "td"),
      element("td", { class: "explorer-score" }, score === null ? "" : score.toFixed(3)),
    );
  };
  const hiddenText = (text) => element("span", { class: "unseen" }, text);
  const sideOf = (name, side) => {
    const relevant = side.hits.filter((hit) => hit[2]).length;
    const counted = `${relevant} of ${relevant + side.below.length} answers in the top ${side.hits.length}`;
    const caption = element("caption", {}, element("b", {}, name), ` ${data.average} ${percent(side.value)}; ${counted}`);
    const heads = ["Rank", "Lang.", "Candidate", "Score"].map((head) => element("th", { scope: "col" }, head));
    const table = element(
      "table",
      { class: "explorer-ranking" },
      caption,
      element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...side.hits.map(line)),
    );
    if (side.below.length) {
      const head = element("th", { scope: "rowgroup", colspan: "4" }, "Answers further down");
      table.append(element("tbody", {}, element("tr", { class: "explorer-further" }, head), ...side.below.map(line)));
    }
    return table;
  };

  const fillPanel = () => {
    const version = versionOf(pair.questions[chosen]);
    const spoken = spokenIn(version);
    mark(tabs, (item) => item.dataset.language === spoken);
    at("panel").setAttribute("aria-labelledby", `explorer-tab-${[...tabs.children].findIndex((t) => t.tabIndex === 0)}`);
    at("question").replaceChildren(worded(version.text));
    at("sides").replaceChildren(sideOf(pair.baseline, version.sides[0]), sideOf(pair.other, version.sides[1]));
  };
  const fillDetail = () => {
    const question = pair.questions[chosen];
    const [before, after] = question.values.map(percent);
    const place = `Question ${chosen + 1} of ${pair.questions.length}`;
    const values = `${data.average} ${before} with ${pair.baseline}, ${after} with ${pair.other} (${change(question.values)})`;
    at("facts").textContent = `${place}, fold ${question.fold}, ${question.id}. Mean over languages: ${values}.`;
    tabs.replaceChildren(
      ...question.versions.map((version, index) => {
        const spoken = spokenIn(version);
        const difference = change(version.sides.map((side) => side.value));
        const name = { "aria-label": `${named(spoken)}, ${difference}`, title: named(spoken) };
        const tab = { id: `explorer-tab-${index}`, role: "tab", type: "button", "aria-controls": "explorer-panel" };
        const inner = element("span", { class: "explorer-change" }, difference);
        return element("button", { ...tab, ...name, "data-language": spoken }, `${spoken} `, inner);
      }),
    );
    fillPanel();
    return `${place}: ${values}.`;
  };
  const filter = () => {
    const wanted = at("find").value.trim().toLocaleLowerCase();
    const texts = (question) => [question.id, ...question.versions.map((version) => data.texts[version.text][1])];
    const has = (question) => texts(question).some((text) => text.toLocaleLowerCase().includes(wanted));
    shown = [...pair.questions.keys()].filter((index) => has(pair.questions[index]));
    if (shown.length && !shown.includes(chosen)) chosen = shown[0];
    fillList();
    fillDetail();
  };

  rove(list, ["ArrowUp", "ArrowDown"], (item) => {
    chosen = Number(item.dataset.index);
    mark(list, (each) => each === item);
    say(fillDetail());
  });
  rove(tabs, ["ArrowLeft", "ArrowRight"], (item) => {
    language = item.dataset.language;
    fillList(); // the list speaks the chosen language, too
    fillPanel();
    const sides = versionOf(pair.questions[chosen]).sides;
    const each = [pair.baseline, pair.other].map((name, i) => `${name} ${percent(sides[i].value)}`);
    say(`${named(language)}: ${each.join(", ")}.`);
  });
  list.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    tabs.querySelector("[tabindex='0']").focus();
  });
  at("detail").addEventListener("keydown", (event) => {
    if (event.key === "Escape") list.querySelector("[tabindex='0']").focus();
  });
  at("find").addEventListener("input", () => {
    filter();
    say(`${shown.length} of ${pair.questions.length} questions.`);
  });
  at("pair").addEventListener("change", (event) => {
    pair = data.pairs[event.target.value];
    chosen = 0;
    filter();
    say(`${pair.baseline} and ${pair.other}: ${shown.length} questions.`);
  });

  data.pairs.forEach((each, index) => {
    at("pair").append(element("option", { value: index }, `${each.baseline} and ${each.other}`));
  });
  const spoken = pair.questions[0].versions.map(spokenIn);
  language = spoken.includes("en") ? "en" : spoken[0];
  at("view").hidden = false;
  filter();
})();
