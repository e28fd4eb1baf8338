"""What precision gains beyond session knobs, and what epsilon costs: by the product's own commands.

    studies/precision/study.py OUT JOB:NAME...

Jobs: ``session``, the session knobs alone; ``precision``, four regions alone, first tried is what a
sweep that was run before found fastest within epsilon, else everything int8; ``both``, all knobs, the winner of ``precision`` tried first; each followed by
``verify --rebuild`` if there is a winner; ``sweep``, all candidates of four regions,
epsilon from infinity to 0; ``trust``, a search over single layers, for what the accuracy model foretold
of each trial and what came.

``OUT/inputs`` holds what inputs.py made. Each study takes $BUDGET seconds (default 300, trust twice as
many) and starts from $BASE, if that is set. With $SHARES=N the processors are shared out and N jobs run side by side. Keep the machine
quiet meanwhile. Needs matplotlib for the pictures.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from dataclasses import asdict
from itertools import product
from pathlib import Path

from smart_tuner.devices.shares import CREW, processor_places, settled
from smart_tuner.model.public import fetch_public_model
from smart_tuner.precision.regions import find_regions
from smart_tuner.precision.view import load_bare, view_of
from smart_tuner.report.reading import read_study
from smart_tuner.study.foretold import LEARNT_AFTER, foretold, violation_share

HERE = Path(__file__).parent
SETTINGS = {
    "ppocr-det": ("task_metrics:text_area", "0.05"),
    "ppocr-rec": ("task_metrics:characters", "0.04"),
    "ddddocr-det": ("task_metrics:boxes", "0.07"),
    "magika": ("top1", "0.05"),
    "ppocr-cls": ("mae", "0.02"),
}
"""The metric, whose mean over the pairs is held to the epsilon."""

PRECISION = "precision.*"
KEPT = ("study.toml", "platform.json", "result.json", "trials.jsonl", "report.md", "winner/manifest.json")
REGIONS = {"magika": "3"}
"""How many regions, where the network has too few layers for four."""


def tuner(*words: object, code: tuple[int, ...] = (0,)) -> str:
    """Run a command of the product, its own words on this terminal; return what it prints."""
    command = [sys.executable, "-c", "from smart_tuner.cli.main import main; main()", *map(str, words)]
    print("$ smart-tuner", *command[3:], flush=True)
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, flush=True)
    if done.returncode not in code:
        sys.exit(f"exit code {done.returncode}")
    return done.stdout


def given(out: Path, name: str, epsilon: str) -> list[object]:
    """Inputs and accuracy of a network."""
    inputs = out / "inputs" / name
    metric = SETTINGS[name][0]
    return [
        *("--inputs", inputs / "search", "--held-out", inputs / "held-out"),
        *("--metric", metric, "--epsilon", epsilon, "--over-pairs", "mean"),
    ]


def session(out: Path, name: str) -> None:
    """Session knobs alone."""
    gain(out, name, "session", [])


def precision(out: Path, name: str) -> None:
    """Regions alone."""
    knobs = region_knobs(name)
    told = out / "kept" / f"{name}-sweep" / "sweep.json"
    bits = "1" * len(knobs)
    if told.is_file():
        epsilon = float(SETTINGS[name][1])
        bits = next(step["fastest"] for step in json.loads(told.read_text())["steps"] if step["epsilon"] <= epsilon)
    first = " ".join(f"-{knob}=int8" for knob, bit in zip(knobs, bits, strict=True) if bit == "1")
    gain(out, name, "precision", [*int8(name), "--only", PRECISION, f"--first={first}"])


def both(out: Path, name: str) -> None:
    """Regions and session knobs."""
    result = json.loads((out / f"{name}-precision.study" / "result.json").read_text())
    gain(out, name, "both", [*int8(name), f"--first={result['route']}"])


def region_knobs(name: str) -> list[str]:
    """The knobs of a network's four regions."""
    path = str(fetch_public_model(name))
    return [f"precision.{region.name}" for region in find_regions(view_of(load_bare(path)), (REGIONS.get(name, "4"),), path)]


def int8(name: str) -> list[str]:
    """Regions that are int8 or kept."""
    return ["--regions", REGIONS.get(name, "4"), "--precisions", "int8"]


def gain(out: Path, name: str, kind: str, words: list[str]) -> None:
    """A study to its end, then the winner, built anew."""
    study, kept = out / f"{name}-{kind}.study", out / "kept" / f"{name}-{kind}"
    tune(name, study, *words, *given(out, name, SETTINGS[name][1]))
    keep(study, kept)
    if kind != "session":
        write_trust(kept, name, study)
    if (study / "winner").is_dir():
        (kept / "verify.json").write_text(tuner("verify", study, "--rebuild", "--json", code=(0, 1)))


def tune(name: str, study: Path, *words: object, times: int = 1) -> None:
    """A study, with its budget and base out of the environment."""
    base = ["--base", os.environ["BASE"]] if os.environ.get("BASE") else []
    budget = f"{times * int(os.environ.get('BUDGET', '300'))}s"
    tuner("tune", f"public:{name}", "--study", study, "--budget", budget, "--seed", 1, *base, *words, "--quiet")


def keep(study: Path, kept: Path) -> None:
    """Copy what is small; paths of one machine mean nothing on another."""
    kept.mkdir(parents=True, exist_ok=True)
    for file in KEPT:
        if (study / file).is_file():
            text = (study / file).read_text()
            for place, shown in ((study.parent.absolute(), ""), (Path.cwd(), ""), (Path.home(), "~/")):
                text = text.replace(f"{place}/", shown)
            (kept / Path(file).name).write_text(text)


def sweep(out: Path, name: str) -> None:
    """Try all candidates of four regions at an infinite epsilon, then lower it in thought."""
    study, kept = out / f"{name}-sweep.study", out / "kept" / f"{name}-sweep"
    knobs = region_knobs(name)
    routes = [
        " ".join(f"-{knob}=int8" for knob, turned in zip(knobs, bits, strict=True) if turned)
        for bits in product((False, True), repeat=len(knobs))
    ]
    first = [f"--first={route}" for route in routes if route]
    words = [*int8(name), "--only", PRECISION, "--trials", len(routes)]
    # No gain ships here: nothing is confirmed, all time goes to the candidates.
    tune(name, study, *words, *first, "--min-gain", 1000, *given(out, name, "inf"))
    keep(study, kept)
    candidates = read(study, knobs)
    if len(candidates) < len(routes):
        sys.exit(f"{len(candidates)} of {len(routes)} candidates were tried: give a larger $BUDGET.")
    write_sweep(kept, name, knobs, candidates)


def trust(out: Path, name: str) -> None:
    """A longer search over many small regions, for what the accuracy model foretells of each trial."""
    study, kept = out / f"{name}-trust.study", out / "kept" / f"{name}-trust"
    words = ["--regions", "per-layer", "--only", PRECISION, "--min-gain", 1000]
    tune(name, study, *words, *given(out, name, SETTINGS[name][1]), times=2)
    keep(study, kept)
    write_trust(kept, name, study)


def write_trust(kept: Path, name: str, study: Path) -> None:
    """The table as JSON, and the picture, of a study's foretold and found losses."""
    view = read_study(study)
    trials = [asdict(trial) for trial in foretold(view.records, view.choices)]
    data = {"violation_share": violation_share(view.records), "trials": trials}
    (kept / "trust.json").write_text(json.dumps(data, indent=1) + "\n")
    if any(min(one["expected"], one["found"]) > 0 for one in trials):
        draw_trust(kept / "trust.svg", name, trials)
    print(f"{name}: {len(view.records)} trials, share over epsilon after the first {LEARNT_AFTER}: {data['violation_share']}")


def draw_trust(path: Path, name: str, trials: list[dict]) -> None:
    pyplot = plotting()
    figure, axes = pyplot.subplots(figsize=(5.5, 5), layout="constrained")
    for late, color in ((False, "tab:gray"), (True, "tab:blue")):
        some = [one for one in trials if (one["number"] >= LEARNT_AFTER) is late]
        label = f"after {LEARNT_AFTER} trials" if late else f"first {LEARNT_AFTER} trials"
        for known, marker in ((True, "o"), (False, "x")):
            of_kind = [one for one in some if one["is_known"] is known]
            name_of_kind = label + ("" if known else ", with a value that was new")
            if of_kind:
                points = [[one[key] for one in of_kind] for key in ("expected", "found")]
                axes.scatter(*points, s=16, color=color, marker=marker, label=name_of_kind)
    figures = [one[key] for one in trials for key in ("expected", "found") if one[key] > 0]
    ends = [min(figures), max(figures)]
    axes.plot(ends, ends, color="black", linewidth=0.8, label="as foretold")
    axes.axhline(1, color="tab:red", linewidth=0.8, label="epsilon")
    axes.axvline(1, color="tab:red", linewidth=0.8)
    axes.set(xscale="log", yscale="log", title=f"{name}: the accuracy model, one trial ahead")
    axes.set_xlabel("foretold from the trials before: loss / epsilon")
    axes.set_ylabel("found: loss / epsilon")
    axes.legend(fontsize=7)
    figure.savefig(path)


def plotting():
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    return pyplot


def read(study: Path, knobs: list[str]) -> list[dict]:
    """Each candidate once: which regions are int8, its gain, its spread, its loss."""
    found = []
    for line in (study / "trials.jsonl").read_text().splitlines():
        trial = json.loads(line)
        record = json.loads((study / "trials" / str(trial["number"]) / "result.json").read_text())
        means = [loss for loss in record["losses"] if loss.get("pairs", 1) > 1]
        bits = "".join(str(int(f"-{knob}=int8" in trial["route"].split())) for knob in knobs)
        if bits in {candidate["int8"] for candidate in found}:
            continue
        loss = max((float(one["loss"]) for one in means), default=math.inf)
        found.append({"int8": bits, "gain": trial["gain"], "half_width": trial["half_width"] or 0.0, "loss": loss})
    return found


def steps(candidates: list[dict]) -> list[dict]:
    """Eligible candidates and the fastest of them, epsilon falling: each step holds down to its epsilon."""
    usable = [one for one in candidates if one["gain"] and math.isfinite(one["loss"])]
    found = []
    for epsilon in sorted({0.0, *(one["loss"] for one in usable)}, reverse=True):
        eligible = [one for one in usable if one["loss"] <= epsilon]
        # Not even the baseline equals its reference to the last bit: at 0 none may be left.
        fastest = max(eligible, key=lambda one: one["gain"], default={"int8": "none", "gain": math.nan})
        found.append({"epsilon": epsilon, "eligible": len(eligible), "fastest": fastest["int8"], "gain": fastest["gain"]})
    return found


def write_sweep(kept: Path, name: str, knobs: list[str], candidates: list[dict]) -> None:
    """The table in Markdown and JSON, the figure as a page and as a small picture."""
    found = steps(candidates)
    metric = SETTINGS[name][0].split(":")[-1]
    order = sorted(candidates, key=lambda one: (-(one["gain"] or 0), one["int8"]))
    lines = [f"# {name}: {len(knobs)} regions, int8 or kept", "", f"Regions, first digit first: {', '.join(knobs)}.", ""]
    lines += [f"| int8 | gain (95 % half width) | mean {metric} |", "| --- | --- | --- |"]
    for one in order:
        gain = "-" if not one["gain"] else f"{one['gain']:.3f}x ({100 * math.expm1(one['half_width']):.1f} %)"
        lines.append(f"| {one['int8']} | {gain} | {one['loss']:.4g} |")
    lines += ["", f"| epsilon ({metric}), down to | eligible | fastest eligible | its gain |", "| --- | --- | --- | --- |"]
    for step in found:
        gain = f"{step['gain']:.3f}x" if step["eligible"] else "-"
        lines.append(f"| {step['epsilon']:.4g} | {step['eligible']} | {step['fastest']} | {gain} |")
    (kept / "sweep.md").write_text("\n".join(lines) + "\n")
    data = {"regions": knobs, "candidates": candidates, "steps": found}
    (kept / "sweep.json").write_text(json.dumps(data, indent=1).replace("Infinity", '"inf"').replace("NaN", "null") + "\n")
    draw_page(kept / "sweep.html", name, metric, candidates, found)
    draw_picture(kept / "sweep.svg", name, metric, candidates, found)


def curve(found: list[dict], largest: float) -> tuple[list[float], list[int], list[float]]:
    """The corners of the stairs, epsilon rising, on an axis that ends at ``largest``."""
    rising = found[::-1]
    last = rising[-1]
    corners = [*rising, {**last, "epsilon": largest}]
    return tuple([corner[key] for corner in corners] for key in ("epsilon", "eligible", "gain"))


def title(name: str, candidates: list[dict]) -> str:
    return f"{name}: {len(candidates[0]['int8'])} regions, keep or int8 (1), {len(candidates)} candidates"


def draw_page(path: Path, name: str, metric: str, candidates: list[dict], found: list[dict]) -> None:
    from plotly.subplots import make_subplots

    largest = 1.2 * max(one["loss"] for one in candidates if math.isfinite(one["loss"]))
    epsilons, eligible, gains = curve(found, largest)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    texts = [one["int8"] for one in candidates]
    points = {"x": [one["loss"] for one in candidates], "y": [one["gain"] for one in candidates]}
    bars = {"array": [(one["gain"] or 0) * math.expm1(one["half_width"]) for one in candidates]}
    figure.add_scatter(**points, error_y=bars, mode="markers+text", text=texts, textposition="top center", name="candidate", row=1, col=1)
    figure.add_scatter(x=epsilons, y=gains, mode="lines", line_shape="hv", name="fastest eligible", row=1, col=1)
    figure.add_scatter(x=epsilons, y=eligible, mode="lines+markers", line_shape="hv", name="eligible", row=2, col=1)
    figure.update_yaxes(title_text="gain", row=1, col=1)
    figure.update_yaxes(title_text="eligible candidates", row=2, col=1)
    figure.update_xaxes(title_text=f"epsilon = loss ({metric}, mean over pairs)", row=2, col=1)
    figure.update_layout(title_text=title(name, candidates), height=700)
    figure.write_html(path, include_plotlyjs="cdn")


def draw_picture(path: Path, name: str, metric: str, candidates: list[dict], found: list[dict]) -> None:
    pyplot = plotting()
    largest = 1.2 * max(one["loss"] for one in candidates if math.isfinite(one["loss"]))
    epsilons, eligible, gains = curve(found, largest)
    figure, (top, bottom) = pyplot.subplots(2, 1, sharex=True, figsize=(7, 6), layout="constrained")
    for one in candidates:
        if one["gain"]:
            spread = one["gain"] * math.expm1(one["half_width"])
            top.errorbar(one["loss"], one["gain"], yerr=spread, fmt="o", color="tab:blue", markersize=4)
            top.annotate(one["int8"], (one["loss"], one["gain"]), xytext=(3, 4), textcoords="offset points", fontsize=7)
    top.step(epsilons, gains, where="post", color="tab:orange", label="fastest eligible")
    top.legend(loc="lower right")
    top.set_ylabel("gain over the baseline")
    top.set_title(title(name, candidates))
    bottom.step(epsilons, eligible, where="post", color="tab:green")
    bottom.set_ylabel("eligible candidates")
    bottom.set_xlabel(f"epsilon = loss ({metric}, mean over pairs)")
    figure.savefig(path)


def side_by_side(out: Path, jobs: list[str], shares: int) -> None:
    """The jobs in their order, each on processors of its own."""
    waiting, running = list(jobs), {}
    free = list(processor_places(shares))
    environment = {**os.environ, "SHARES": "", CREW: str(os.getpid())}
    while waiting or running:
        while waiting and free:
            job, place = waiting.pop(0), free.pop(0)
            log = (out / f"{job.replace(':', '-')}.log").open("w")
            with settled(place):
                child = subprocess.Popen([sys.executable, __file__, str(out), job], env=environment, stdout=log, stderr=log)
            running[child] = (job, place)
        time.sleep(0.5)
        for child in [child for child in running if child.poll() is not None]:
            job, place = running.pop(child)
            print(f"{job}: exit code {child.returncode}", flush=True)
            free.append(place)


def main() -> None:
    jobs = {"session": session, "precision": precision, "both": both, "sweep": sweep, "trust": trust}
    wanted = [text.partition(":") for text in sys.argv[2:]]
    if not wanted or any(job not in jobs or name not in SETTINGS for job, _, name in wanted):
        sys.exit(f"usage: study.py OUT JOB:NAME..., jobs {', '.join(jobs)}, names {', '.join(SETTINGS)}")
    out = Path(sys.argv[1])
    if os.environ.get("SHARES"):
        side_by_side(out, sys.argv[2:], int(os.environ["SHARES"]))
        return
    for job, _, name in wanted:
        jobs[job](out, name)


if __name__ == "__main__":
    main()
