"""What precision gains beyond session knobs, and what epsilon costs: by the product's own commands.

    studies/precision/study.py OUT JOB:NAME... [--budget 300] [--base FILE] [--backend onnxruntime] [--precision int8]

Jobs:

session     the session knobs alone;
precision   four regions alone, first tried is what a sweep that was run before found fastest within
            epsilon, else everything lowered;
both        all knobs, the winner of ``precision`` tried first;
sweep       all candidates of four regions, epsilon from infinity to 0, as OUT/kept/NAME-sweep/sweep.json;
draw        tables and pictures of what ``sweep`` left, on any machine;
trust       a search over single layers, for what the accuracy model foretold of each trial and what came.

The first three are followed by ``verify --rebuild`` if there is a winner. ``--inputs`` (OUT/inputs by default) holds
what inputs.py made. Each study takes ``--budget`` seconds, trust twice as many. A region is kept or gets ``--precision``.
With ``--shares N`` the processors are shared out and N jobs run side by side. Keep the machine quiet meanwhile.
Needs matplotlib and plotly for the pictures.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

from smart_tuner.devices.shares import CREW, processor_places, settled
from smart_tuner.model.public import fetch_public_model
from smart_tuner.precision.regions import find_regions
from smart_tuner.precision.view import load_bare, view_of
from smart_tuner.report.reading import read_study
from smart_tuner.study.progress.budget import FINALIST_SECONDS, FINALIST_SHARE
from smart_tuner.study.search.foretold import LEARNT_AFTER, foretold, violation_share

HERE = Path(__file__).parent
SETTINGS = {
    "ppocr-det": ("task_metrics:text_area", "0.05"),
    "ppocr-rec": ("task_metrics:characters", "0.04"),
    "ddddocr-det": ("task_metrics:boxes", "0.07"),
    "magika": ("top1", "0.05"),
    "ppocr-cls": ("mae", "0.02"),
}
"""The metric, whose mean over the pairs is held to the epsilon, where regions are in 8 bits."""

HALVES = {
    "ppocr-det": ("linf", "0.05"),
    "ppocr-rec": ("linf", "0.05"),
    "ddddocr-det": ("linf", "0.05"),
    "magika": ("linf", "0.01"),
    "ppocr-cls": ("linf", "0.02"),
}
"""The same for half precision, which hardly any task notices: the largest difference of any element."""

PRECISION = "precision.*"
LEAST_DRAWN = 0.02
"""Share of epsilon below which losses are drawn as that."""

STOPPED = 130
"""Exit code of a study that Ctrl-C stopped."""

PATIENCE = 10.0
"""Seconds after which a study that outlasts its end is stopped so, which loses the trial in flight."""

KEPT = ("study.toml", "platform.json", "result.json", "trials.jsonl", "report.md", "winner/manifest.json")
REGIONS = {"magika": "3"}
"""How many regions, where the network has too few layers for four."""


@dataclass(frozen=True)
class Options:
    """What holds for all jobs of a call.

    Attributes:
        out: Folder of the studies.
        inputs: Folder with NAME/search and NAME/held-out.
        backend: What runs the networks.
        precision: What a region gets that is not kept.
        base: File with settings below every route.
        io: Where inputs and outputs lie; the backend's way if empty.
        budget: Seconds of a study.
        trials: Limit on the trials of a gain, if any.
        rounds: Fresh builds a side that ``verify`` makes.
        ends: When a sweep ends, by the monotonic clock; what is missing comes in the next one.
    """

    out: Path
    inputs: Path
    backend: str = "onnxruntime"
    precision: str = "int8"
    base: Path | None = None
    io: str = ""
    budget: float = 300.0
    trials: int | None = None
    rounds: int = 5
    ends: float = math.inf

    def setting(self, name: str) -> tuple[str, str]:
        """Metric and epsilon of a network."""
        return (HALVES if self.precision in ("fp16", "bf16") else SETTINGS)[name]

    def study(self, name: str, kind: str) -> Path:
        return self.out / f"{name}-{kind}.study"

    def kept(self, name: str, kind: str) -> Path:
        return self.out / "kept" / f"{name}-{kind}"


def tuner(*words: object, code: tuple[int, ...] = (0,), ends: float = math.inf) -> str:
    """Run a command of the product, its own words on this terminal; return what it prints.

    When time ends it is stopped as Ctrl-C stops it, which a study survives.
    """
    command = [sys.executable, "-c", "from smart_tuner.cli.main import main; main()", *map(str, words)]
    print("$ smart-tuner", *command[3:], flush=True)
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        try:
            said, _ = child.communicate(timeout=None if ends == math.inf else max(1.0, ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            said, _ = child.communicate()
    print(said, flush=True)
    if child.returncode not in code:
        sys.exit(f"exit code {child.returncode}")
    return said


def given(options: Options, name: str, epsilon: str) -> list[object]:
    """Inputs and accuracy of a network."""
    inputs = options.inputs / name
    return [
        *("--inputs", inputs / "search", "--held-out", inputs / "held-out"),
        *("--metric", options.setting(name)[0], "--epsilon", epsilon, "--over-pairs", "mean"),
    ]


def session(options: Options, name: str) -> None:
    """Session knobs alone."""
    gain(options, name, "session", [])


def precision(options: Options, name: str) -> None:
    """Regions alone."""
    knobs = region_knobs(name)
    bits = "1" * len(knobs)
    if (step := fastest_within(options, name)) is not None and "1" in step["fastest"]:
        bits = step["fastest"]
    first = f"--first={route(knobs, bits, options.precision)}"
    gain(options, name, "precision", [*lowered(options, name), "--only", PRECISION, first])


def fastest_within(options: Options, name: str) -> dict | None:
    """What a sweep that was run before found fastest within epsilon, if it was."""
    told = options.kept(name, "sweep") / "sweep.json"
    if not told.is_file():
        return None
    epsilon = float(options.setting(name)[1])
    steps = (step for step in json.loads(told.read_text())["steps"] if step["epsilon"] <= epsilon)
    return next((step for step in steps if step["eligible"]), None)


def both(options: Options, name: str) -> None:
    """Regions and session knobs."""
    result = json.loads((options.study(name, "precision") / "result.json").read_text())
    gain(options, name, "both", [*lowered(options, name), f"--first={result['route']}"])


def region_knobs(name: str) -> list[str]:
    """The knobs of a network's four regions."""
    path = str(fetch_public_model(name))
    return [f"precision.{region.name}" for region in find_regions(view_of(load_bare(path)), (REGIONS.get(name, "4"),), path)]


def route(knobs: list[str], bits: str, precision: str) -> str:
    """The route that lowers the regions whose digit is 1."""
    return " ".join(f"-{knob}={precision}" for knob, bit in zip(knobs, bits, strict=True) if bit == "1")


def lowered(options: Options, name: str) -> list[str]:
    """Regions that are lowered or kept."""
    return ["--regions", REGIONS.get(name, "4"), "--precisions", options.precision]


def gain(options: Options, name: str, kind: str, words: list[str]) -> None:
    """A study to its end, then the winner, built anew."""
    study, kept = options.study(name, kind), options.kept(name, kind)
    limit = ["--trials", options.trials] if options.trials else []
    tune(options, name, study, *words, *limit, *given(options, name, options.setting(name)[1]))
    keep(study, kept)
    if kind != "session":
        write_trust(kept, name, study)
    if (study / "winner").is_dir():
        (kept / "verify.json").write_text(tuner("verify", study, "--rebuild", "--rounds", options.rounds, "--json", code=(0, 1)))


def tune(options: Options, name: str, study: Path, *words: object, times: int = 1) -> None:
    """A study on the base, or the rest of one, until its budget or the time ends."""
    fixed = ["--backend", options.backend, "--budget", f"{times * options.budget:g}s", "--seed", 1]
    fixed += ["--base", options.base] if options.base else []
    fixed += ["--io", options.io] if options.io else []
    tuner("tune", f"public:{name}", "--study", study, *fixed, *words, "--quiet", code=(0, STOPPED), ends=options.ends + PATIENCE)


def keep(study: Path, kept: Path) -> None:
    """Copy what is small; paths of one machine mean nothing on another."""
    kept.mkdir(parents=True, exist_ok=True)
    for file in KEPT:
        if (study / file).is_file():
            text = (study / file).read_text()
            for place, shown in ((study.parent.absolute(), ""), (Path.cwd(), ""), (Path.home(), "~/")):
                text = text.replace(f"{place}/", shown)
            (kept / Path(file).name).write_text(text)


def sweep(options: Options, name: str) -> None:
    """Try all candidates of four regions at an infinite epsilon, then lower it in thought."""
    study, kept = options.study(name, "sweep"), options.kept(name, "sweep")
    knobs = region_knobs(name)
    every = ["".join(bits) for bits in product("01", repeat=len(knobs))]
    first = [f"--first={route(knobs, bits, options.precision)}" for bits in every if "1" in bits]
    words = [*lowered(options, name), "--only", PRECISION, "--trials", len(every)]
    # No gain ships here: nothing is confirmed, all time goes to the candidates.
    words += [*first, "--min-gain", 1000, *given(options, name, "inf")]
    tune(replace(options, budget=sweep_budget(options, study)), name, study, *words)
    keep(study, kept)
    candidates = read(study, knobs, options.precision)
    data = {
        "network": name,
        "backend": options.backend,
        "precision": options.precision,
        "metric": options.setting(name)[0].split(":")[-1],
        "regions": knobs,
        "candidates": candidates,
        "steps": steps(candidates),
    }
    (kept / "sweep.json").write_text(json.dumps(data, indent=1).replace("Infinity", '"inf"').replace("NaN", "null") + "\n")
    if len(candidates) < len(every):
        sys.exit(f"{len(candidates)} of {len(every)} candidates were tried: run it again, with a larger --budget.")


def sweep_budget(options: Options, study: Path) -> float:
    """The budget with which the search ends in time, between two candidates: what it leaves to finalists goes unused."""
    if options.ends == math.inf:
        return options.budget
    spent = read_study(study).spent_seconds if (study / "study.toml").is_file() else 0.0
    seconds = spent + max(1.0, options.ends - time.monotonic())
    return max(seconds / (1 - FINALIST_SHARE), seconds + FINALIST_SECONDS[0])


def trust(options: Options, name: str) -> None:
    """A longer search over many small regions, for what the accuracy model foretells of each trial."""
    study, kept = options.study(name, "trust"), options.kept(name, "trust")
    words = ["--regions", "per-layer", "--only", PRECISION, "--min-gain", 1000]
    tune(options, name, study, *words, *given(options, name, options.setting(name)[1]), times=2)
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
                points = [[max(LEAST_DRAWN, one[key]) for one in of_kind] for key in ("expected", "found")]
                axes.scatter(*points, s=16, color=color, marker=marker, label=name_of_kind)
    figures = [max(LEAST_DRAWN, one[key]) for one in trials for key in ("expected", "found")]
    ends = [min(figures), max(figures)]
    axes.plot(ends, ends, color="black", linewidth=0.8, label="as foretold")
    axes.axhline(1, color="tab:red", linewidth=0.8, label="epsilon")
    axes.axvline(1, color="tab:red", linewidth=0.8)
    axes.set(xscale="log", yscale="log", title=f"{name}: the accuracy model, one trial ahead")
    axes.set_xlabel(f"foretold from the trials before: loss / epsilon\n(less than {LEAST_DRAWN} is drawn at the edge)")
    axes.set_ylabel("found: loss / epsilon")
    axes.legend(fontsize=7)
    figure.savefig(path)


def plotting():
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    return pyplot


def read(study: Path, knobs: list[str], precision: str) -> list[dict]:
    """Each candidate once, of a study that may be unfinished: which regions are lowered, its gain, its spread, its loss."""
    view = read_study(study)
    found = {}
    for record in view.records:
        settings = str(record.route).split()
        bits = "".join(str(int(f"-{knob}={precision}" in settings)) for knob in knobs)
        losses = json.loads((study / "trials" / str(record.number) / "result.json").read_text())["losses"]
        means = [float(loss["loss"]) for loss in losses if loss.get("pairs", 1) > 1]
        facts = {"lowered": bits, "outcome": record.outcome.value, "gain": view.gain(record)}
        found.setdefault(bits, {**facts, "half_width": record.half_width or 0.0, "loss": max(means, default=math.inf)})
    return list(found.values())


def steps(candidates: list[dict]) -> list[dict]:
    """Eligible candidates and the fastest of them, epsilon falling: each step holds down to its epsilon."""
    usable = [one for one in candidates if one["gain"] and math.isfinite(one["loss"])]
    found = []
    for epsilon in sorted({0.0, *(one["loss"] for one in usable)}, reverse=True):
        eligible = [one for one in usable if one["loss"] <= epsilon]
        # Not even the baseline equals its reference to the last bit: at 0 none may be left.
        fastest = max(eligible, key=lambda one: one["gain"], default={"lowered": "none", "gain": math.nan})
        found.append({"epsilon": epsilon, "eligible": len(eligible), "fastest": fastest["lowered"], "gain": fastest["gain"]})
    return found


def draw(options: Options, name: str) -> None:
    """The table in Markdown, the figure as a page and as a small picture, of what a sweep left."""
    kept = options.kept(name, "sweep")
    data = json.loads((kept / "sweep.json").read_text())
    for one in data["candidates"]:
        one["loss"] = float(one["loss"])
    for step in data["steps"]:
        step["gain"] = math.nan if step["gain"] is None else step["gain"]
    (kept / "sweep.md").write_text("\n".join(table(data)) + "\n")
    draw_page(kept / "sweep.html", data)
    draw_picture(kept / "sweep.svg", data)


def table(data: dict) -> list[str]:
    """The candidates, the fastest first, and the steps of epsilon."""
    precision, metric, knobs = data["precision"], data["metric"], data["regions"]
    order = sorted(data["candidates"], key=lambda one: (-(one["gain"] or 0), one["lowered"]))
    lines = [f"# {data['network']}: {len(knobs)} regions, {precision} or kept", ""]
    lines += [f"Regions, first digit first: {', '.join(knobs)}.", ""]
    lines += [f"| {precision} | gain (95 % half width) | mean {metric} |", "| --- | --- | --- |"]
    for one in order:
        gain = f"{one['gain']:.3f}x ({100 * math.expm1(one['half_width']):.1f} %)" if one["gain"] else one["outcome"]
        lines.append(f"| {one['lowered']} | {gain} | {one['loss']:.4g} |")
    lines += ["", f"| epsilon ({metric}), down to | eligible | fastest eligible | its gain |", "| --- | --- | --- | --- |"]
    for step in data["steps"]:
        gain = f"{step['gain']:.3f}x" if step["eligible"] else "-"
        lines.append(f"| {step['epsilon']:.4g} | {step['eligible']} | {step['fastest']} | {gain} |")
    return lines


def curve(found: list[dict], largest: float) -> tuple[list[float], list[int], list[float]]:
    """The corners of the stairs, epsilon rising, on an axis that ends at ``largest``."""
    rising = found[::-1]
    last = rising[-1]
    corners = [*rising, {**last, "epsilon": largest}]
    return tuple([corner[key] for corner in corners] for key in ("epsilon", "eligible", "gain"))


def title(data: dict) -> str:
    return f"{data['network']}: {len(data['regions'])} regions, keep or {data['precision']} (1), {len(data['candidates'])} candidates"


def draw_page(path: Path, data: dict) -> None:
    from plotly.subplots import make_subplots

    candidates = data["candidates"]
    largest = 1.2 * max(one["loss"] for one in candidates if math.isfinite(one["loss"]))
    epsilons, eligible, gains = curve(data["steps"], largest)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    texts = [one["lowered"] for one in candidates]
    points = {"x": [one["loss"] for one in candidates], "y": [one["gain"] for one in candidates]}
    bars = {"array": [(one["gain"] or 0) * math.expm1(one["half_width"]) for one in candidates]}
    figure.add_scatter(**points, error_y=bars, mode="markers+text", text=texts, textposition="top center", name="candidate", row=1, col=1)
    figure.add_scatter(x=epsilons, y=gains, mode="lines", line_shape="hv", name="fastest eligible", row=1, col=1)
    figure.add_scatter(x=epsilons, y=eligible, mode="lines+markers", line_shape="hv", name="eligible", row=2, col=1)
    figure.update_yaxes(title_text="gain", row=1, col=1)
    figure.update_yaxes(title_text="eligible candidates", row=2, col=1)
    figure.update_xaxes(title_text=f"epsilon = loss ({data['metric']}, mean over pairs)", row=2, col=1)
    figure.update_layout(title_text=title(data), height=700)
    figure.write_html(path, include_plotlyjs="cdn")


def draw_picture(path: Path, data: dict) -> None:
    pyplot = plotting()
    candidates = data["candidates"]
    largest = 1.2 * max(one["loss"] for one in candidates if math.isfinite(one["loss"]))
    epsilons, eligible, gains = curve(data["steps"], largest)
    figure, (top, bottom) = pyplot.subplots(2, 1, sharex=True, figsize=(7, 6), layout="constrained")
    for one in candidates:
        if one["gain"]:
            spread = one["gain"] * math.expm1(one["half_width"])
            top.errorbar(one["loss"], one["gain"], yerr=spread, fmt="o", color="tab:blue", markersize=4)
            top.annotate(one["lowered"], (one["loss"], one["gain"]), xytext=(3, 4), textcoords="offset points", fontsize=7)
    top.step(epsilons, gains, where="post", color="tab:orange", label="fastest eligible")
    top.legend(loc="lower right")
    top.set_ylabel("gain over the baseline")
    top.set_title(title(data))
    bottom.step(epsilons, eligible, where="post", color="tab:green")
    bottom.set_ylabel("eligible candidates")
    bottom.set_xlabel(f"epsilon = loss ({data['metric']}, mean over pairs)")
    figure.savefig(path)


def side_by_side(out: Path, jobs: list[str], words: list[str], shares: int) -> None:
    """The jobs in their order, each on processors of its own."""
    waiting, running = list(jobs), {}
    free = list(processor_places(shares))
    environment = {**os.environ, CREW: str(os.getpid())}
    while waiting or running:
        while waiting and free:
            job, place = waiting.pop(0), free.pop(0)
            log = (out / f"{job.replace(':', '-')}.log").open("w")
            with settled(place):
                command = [sys.executable, __file__, str(out), job, *words]
                child = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            running[child] = (job, place)
        time.sleep(0.5)
        for child in [child for child in running if child.poll() is not None]:
            job, place = running.pop(child)
            print(f"{job}: exit code {child.returncode}", flush=True)
            free.append(place)


JOBS = {"session": session, "precision": precision, "both": both, "sweep": sweep, "draw": draw, "trust": trust}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("jobs", nargs="+", metavar="JOB:NAME", choices=[f"{job}:{name}" for job in JOBS for name in SETTINGS])
    parser.add_argument("--shares", type=int, default=1)
    flags = parser.add_argument_group("of each study")
    flags.add_argument("--inputs", type=Path, metavar="FOLDER")
    flags.add_argument("--backend", default="onnxruntime")
    flags.add_argument("--precision", default="int8")
    flags.add_argument("--base", type=Path, metavar="FILE")
    flags.add_argument("--io", default="")
    flags.add_argument("--budget", type=float, default=300.0, metavar="SECONDS")
    flags.add_argument("--trials", type=int)
    flags.add_argument("--rounds", type=int, default=5, help="of verify")
    asked = vars(parser.parse_args())
    jobs, shares = asked.pop("jobs"), asked.pop("shares")
    options = Options(**{**asked, "inputs": asked["inputs"] or asked["out"] / "inputs"})
    if shares > 1:
        words = [f"--{flag}={value}" for flag, value in asked.items() if value and flag != "out"]
        side_by_side(options.out, jobs, words, shares)
        return
    for job in jobs:
        what, _, name = job.partition(":")
        JOBS[what](options, name)


if __name__ == "__main__":
    main()
