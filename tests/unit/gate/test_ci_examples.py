"""The examples for CI servers are what their servers read, and their commands are ours."""

import importlib.util
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.unit.cli.calling import call
from tests.unit.gate.pipelines import Pipeline

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "configs" / "ci").glob("*.yml"))


def scripts(node: object) -> Iterator[str]:
    """The shell lines of a pipeline: GitHub's ``run`` and GitLab's ``script``."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "run":
                yield from str(value).splitlines()
            elif key in ("script", "before_script"):
                yield from value
            else:
                yield from scripts(value)
    elif isinstance(node, list):
        for item in node:
            yield from scripts(item)


def commands(path: Path) -> list[list[str]]:
    lines = scripts(yaml.safe_load(path.read_text()))
    return [shlex.split(line)[1:] for line in lines if line.startswith("smart-tuner ")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_command_of_an_example_is_taken(path: Path, pipeline: Pipeline) -> None:
    """Each runs against a store and a model of ours, dry: every flag is known and fits the rest."""
    found = commands(path)
    assert [words[0] for words in found].count("ci") >= 2
    ours = {
        "$STORE": str(pipeline.store),
        "models/detector.onnx": str(pipeline.model),
        "images:1x3x640x640": "x:1x16",
    }
    for words in found:
        given = [ours.get(word, word) for word in words]
        given += ["--backend", "replay"] * (words[0] == "ci")
        given += ["--dry-run"] * (words[:2] != ["store", "ls"] and "--dry-run" not in words)
        ended = call(*given)
        assert ended.code == 0, (words, ended.err)


def test_a_github_workflow_has_jobs_with_steps() -> None:
    workflow = yaml.safe_load((ROOT / "configs" / "ci" / "github-actions.yml").read_text())
    # YAML 1.1 reads the key "on" as true.
    assert set(workflow[True]) == {"pull_request", "push"}
    for step in workflow["jobs"]["gate"]["steps"]:
        assert {"run", "uses"} & step.keys()


def test_a_gitlab_pipeline_reports_to_its_server() -> None:
    pipeline = yaml.safe_load((ROOT / "configs" / "ci" / "gitlab-ci.yml").read_text())
    assert pipeline[".smart-tuner"]["artifacts"]["reports"]["junit"] == "gate.xml"
    for name, job in pipeline.items():
        assert name.startswith(".") or job["extends"] == ".smart-tuner"


def test_an_advisory_without_a_fix_stops_nobody() -> None:
    spec = importlib.util.spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    audit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(audit)
    vulns = [{"id": "A-1", "fix_versions": []}, {"id": "A-2", "fix_versions": ["1.1"]}]
    found = audit.advisories({"name": "x", "version": "1.0", "vulns": vulns})
    assert found == [(False, "x 1.0: A-1"), (True, "x 1.0: A-2, fixed in 1.1")]
