// Says of each trial what it was, in the list and above its details. The released dashboard shows
// constraints in its plots alone, so a violator would be listed as "Complete". Only attributes are
// set: what the page draws stays as it is.
"use strict";
(() => {
  const PAUSE = 100, AGAIN = 10000;
  let study = "", outcomes = {}, waiting = false;

  const style = document.createElement("style");
  style.textContent =
    '.MuiChip-label[data-outcome]::after { content: ": " attr(data-outcome); color: #d9534f; }';
  document.head.append(style);

  const ask = async () => {
    if (!study || document.hidden) return;
    const answer = await fetch(`/smart-tuner/outcomes/${study}`);
    if (answer.ok) outcomes = await answer.json();
    mark();
  };

  const mark = () => {
    for (const chip of document.querySelectorAll(".MuiChip-label")) {
      const row = chip.closest(".MuiListItemButton-root");
      const part = row || chip.closest(".MuiChip-root").parentElement.parentElement;
      const title = part && part.querySelector(".MuiListItemText-primary, h4");
      const trial = title && /^Trial (\d+)/.exec(title.textContent);
      const word = trial && chip.textContent !== "Best Trial" ? outcomes[trial[1]] : "";
      if (word && chip.dataset.outcome !== word) chip.dataset.outcome = word;
      if (!word && chip.dataset.outcome) delete chip.dataset.outcome;
    }
  };

  const look = () => {
    waiting = false;
    const found = /\/studies\/(\d+)/.exec(location.pathname);
    const now = found ? found[1] : "";
    if (now !== study) {
      [study, outcomes] = [now, {}];
      ask();
    }
    mark();
  };

  const soon = () => {
    if (waiting) return;
    waiting = true;
    setTimeout(look, PAUSE);
  };

  new MutationObserver(soon).observe(document.documentElement, {
    childList: true,
    subtree: true,
    characterData: true,
  });
  setInterval(ask, AGAIN);
  soon();
})();
