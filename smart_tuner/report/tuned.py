"""``smart_tuner.tune``: the search, and a result that can be looked at."""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import EnvironmentNotFit
from smart_tuner.report.jsonl import trial_facts
from smart_tuner.report.pictures import PICTURES
from smart_tuner.report.reading import read_study
from smart_tuner.study import tune as searching
from smart_tuner.study.progress.events import silent
from smart_tuner.study.proof import result as kept

if TYPE_CHECKING:
    from pathlib import Path

    import plotly.graph_objects as go

    from smart_tuner.study.progress.events import Listener
    from smart_tuner.study.setup.settings import StudySettings

KNOB = "knob."
"""How the columns of knobs begin."""


@dataclass(frozen=True, slots=True)
class TuneResult(kept.TuneResult):
    """What a study found, with its trials as a table and as pictures.

    Every picture is a plotly figure: ``show()``, ``write_html(...)``. Where there is no data for
    one, it says why.
    """

    def to_dataframe(self) -> Any:
        """The finished trials as a ``pandas.DataFrame``, one a row.

        Columns: ``number``, ``route``, ``outcome``, ``latency_ms``, ``gain``, ``half_width`` (of
        the 95 % interval on ln(gain)), ``violation`` (log10 of loss over epsilon), ``over_limits``,
        ``unchanged``, ``fingerprint``, ``seconds``, ``reason``, ``message``, and ``knob.NAME`` for
        each knob that a trial turned.

        Raises:
            EnvironmentNotFit: pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError:
            msg = "A data frame needs pandas: `pip install pandas`."
            raise EnvironmentNotFit(msg) from None
        view = read_study(self.study)
        turned = {name for record in view.records for name, _ in record.route.settings}
        defaults = {name: values[0] for name, values in view.choices.items() if name in turned}
        rows = []
        for record in view.records:
            facts = trial_facts(record, view.baseline_ms)
            facts["seconds"] = record.seconds.get("total")
            values = {**defaults, **record.route.values}
            rows.append({**facts, **{f"{KNOB}{name}": value for name, value in values.items()}})
        return pandas.DataFrame(rows)

    def plot_history(self) -> go.Figure:
        """Gain of each trial in order, the best so far, failures and the budget."""
        return self._plot("history")

    def plot_confirmation(self) -> go.Figure:
        """Fresh builds of finalists against fresh builds of the default, block by block."""
        return self._plot("confirmation")

    def plot_effects(self) -> go.Figure:
        """What each knob value does to latency, with 95 % intervals and the noise floor."""
        return self._plot("effects")

    def plot_tradeoff(self) -> go.Figure:
        """Gain against accuracy loss, epsilon drawn."""
        return self._plot("tradeoff")

    def plot_epsilon_sweep(self) -> go.Figure:
        """How many tried routes are eligible at each epsilon, and the gain of the fastest."""
        return self._plot("sweep")

    def plot_failures(self) -> go.Figure:
        """Which values break, violate or time out."""
        return self._plot("failures")

    def plot_phases(self) -> go.Figure:
        """Where the budget went."""
        return self._plot("phases")

    def _plot(self, name: str) -> go.Figure:
        return PICTURES[name](read_study(self.study)).shown()


def tune(
    model: str | Path | StudySettings, *, listener: Listener = silent, **settings: Any
) -> TuneResult:
    """Find the fastest acceptable route of a model within a budget, and prove it.

    Args:
        model: Path of an ONNX model, ``public:NAME``, or complete settings.
        listener: Hears what happens, event by event.
        **settings: Fields of ``StudySettings``, e.g. ``budget="10m", epsilon=("0.01",)``.

    Returns:
        The verdict, with the trials behind it as a table and as pictures.

    Raises:
        UserInputError: A setting, a file or the model is wrong; nothing was begun.
        StudyMismatch: The folder holds a study of something else.
        EnvironmentNotFit: This machine lacks something.
        KeyboardInterrupt: Ctrl-C; the study is kept, and the same call continues it.
    """
    found = searching.tune(model, listener=listener, **settings)
    return TuneResult(**{item.name: getattr(found, item.name) for item in fields(found)})
