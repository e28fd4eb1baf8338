"""What a store promises: nothing half written, nothing lost, nothing foreign loaded."""

import json
import shutil
import threading
from pathlib import Path

import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.gate.archive import put
from smart_tuner.gate.documents import Entry, Run, is_name, parse_document, read_document
from smart_tuner.gate.sides import TakenOut, taken_out
from smart_tuner.gate.store import ENTRY_FILE, Store, new_id, open_store, utc_now
from smart_tuner.model.load import load_model
from smart_tuner.model.workload import Workload
from smart_tuner.trial.options import EvaluatorOptions
from tests.unit.cli.calling import call
from tests.unit.gate.pipelines import Pipeline


def another(entry: Entry, **changes: object) -> Entry:
    now = utc_now()
    fields = {"id": new_id(entry.name, entry.key, now), "created": now.isoformat(), **changes}
    return entry.model_copy(update=fields)


def entry_of(pipeline: Pipeline) -> Entry:
    return read_document(pipeline.entries()[0] / ENTRY_FILE, Entry)


def run_of(pipeline: Pipeline) -> Run:
    (path,) = (pipeline.entries()[0] / "runs").iterdir()
    return read_document(path, Run)


def laid_out(pipeline: Pipeline, place: Path) -> Path:
    """The first entry as it was before it went into the store."""
    shutil.copytree(pipeline.entries()[0], place)
    shutil.rmtree(place / "runs")
    (place / ENTRY_FILE).unlink()
    return place


def trouble_with(store: Store) -> str:
    try:
        for name in store.ids():
            store.read(name).check_files()
    except UserInputError as error:
        return str(error)
    return ""


def test_jobs_at_once_lose_nothing_and_a_reader_never_sees_half(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    store, entry, run = Store(pipeline.store), entry_of(pipeline), run_of(pipeline)
    place = laid_out(pipeline, tmp_path / "place")
    shutil.rmtree(store.root / "sources")
    (store.root / "sources").mkdir()
    troubles = set()
    done = threading.Event()

    def write() -> None:
        for _ in range(4):
            own = another(entry)
            put(store, own, place, pipeline.model)
            store.add_run(own.id, run)
            store.add_run(entry.id, run)

    def look() -> None:
        while not done.is_set():
            troubles.add(trouble_with(store))

    reader = threading.Thread(target=look)
    writers = [threading.Thread(target=write) for _ in "abc"]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert troubles <= {""}
    assert len(store.ids()) == 13
    assert len(store.read(entry.id).runs) == 13
    assert len(list((store.root / "sources").iterdir())) == 1


def test_an_accepted_engine_is_what_later_ones_are_compared_with(pipeline: Pipeline) -> None:
    store, entry, run = Store(pipeline.store), entry_of(pipeline), run_of(pipeline)
    place = laid_out(pipeline, pipeline.folder / "place")
    branch = another(entry, key="1" * 16)
    elsewhere = another(entry, key="2" * 16, facts={**entry.facts, "device": "another"})
    for new, accepted in ((branch, False), (elsewhere, True)):
        put(store, new, place, pipeline.model)
        created = utc_now().isoformat()
        store.add_run(new.id, run.model_copy(update={"accepted": accepted, "created": created}))
    found = store.baseline(entry.name, entry.facts)
    assert found is not None
    assert found.entry.id == entry.id
    exact = store.exact(entry.name, "1" * 16)
    assert exact is not None
    assert exact.entry.id == branch.id


def test_a_file_that_is_not_what_was_stored_is_never_taken_out(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    store = Store(pipeline.store)
    kept = store.read(entry_of(pipeline).id)
    taken_out(kept, store, tmp_path / "good")
    source = next(path for path in (store.root / "sources").rglob("*.onnx"))
    source.write_bytes(source.read_bytes() + b" ")
    with pytest.raises(UserInputError, match="nothing of it is loaded"):
        taken_out(kept, store, tmp_path / "bad")
    engine = kept.folder / "candidate" / "engine.json"
    moved = engine.rename(tmp_path / "engine.json")
    engine.symlink_to(moved)
    with pytest.raises(UserInputError, match="nothing of it is loaded"):
        kept.check_files()


@pytest.mark.parametrize("path", ["../engine", "/etc/passwd", "a/../../b", "", "a\\b"])
def test_paths_stay_inside_their_entry(pipeline: Pipeline, path: str) -> None:
    document = json.loads((pipeline.entries()[0] / ENTRY_FILE).read_text())
    document["files"][path] = "0" * 64
    with pytest.raises(UserInputError, match="damaged"):
        parse_document(json.dumps(document).encode(), "entry.json", Entry)


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "", "x" * 81, "a\n"])
def test_names_are_safe_as_file_names(name: str) -> None:
    assert not is_name(name)


def test_the_command_lists_shows_and_cleans_up(pipeline: Pipeline, tmp_path: Path) -> None:
    store, entry, run = Store(pipeline.store), entry_of(pipeline), run_of(pipeline)
    place = laid_out(pipeline, tmp_path / "place")
    newer = [another(entry) for _ in range(3)]
    for new in newer:
        put(store, new, place, pipeline.model)
    rows = json.loads(call("store", "ls", store.root, "--json").out)
    assert [row["accepted"] for row in rows] == [True, False, False, False]
    assert call("store", "ls", store.root).out.count(" no ") == 3
    shown = call("store", "show", store.root, entry.id)
    assert shown.code == 0
    assert "-speed=fast" in shown.out
    unknown = call("store", "show", store.root, "nobody")
    assert (unknown.code, "nobody" in unknown.err) == (2, True)

    # The accepted one stays though it is the oldest; the newest stays as asked for.
    dropped = call("store", "gc", store.root, "--keep", 1, "--dry-run", "--json")
    assert len(json.loads(dropped.out)["dropped"]) == 2
    assert len(store.ids()) == 4
    assert call("store", "gc", store.root, "--keep", 1).code == 0
    assert set(store.ids()) == {entry.id, newer[-1].id}

    (store.entries / newer[-1].id / "candidate" / "engine.json").write_text("{}")
    listed = call("store", "ls", store.root)
    assert (listed.code, "was changed" in listed.out) == (1, True)
    refused = call("store", "gc", store.root)
    assert (refused.code, "--damaged" in refused.err) == (2, True)
    assert call("store", "gc", store.root, "--damaged").code == 0
    assert store.ids() == (entry.id,)
    store.add_run(entry.id, run)
    assert len(store.read(entry.id).runs) == 2


def test_a_store_is_never_begun_in_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UserInputError, match="is no store"):
        open_store(tmp_path, init=True)
    assert open_store(tmp_path / "new", init=True).ids() == ()
    assert open_store(tmp_path / "new", init=False).ids() == ()


def test_a_network_that_was_rewritten_is_built_as_it_shipped(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    entry = entry_of(pipeline)
    route = [("precision.all", "int8"), ("speed", "fast")]
    artefact = entry.candidate.model_copy(update={"route": route})
    files = {**entry.files, "candidate/model.onnx": "0" * 64}
    rewritten = entry.model_copy(update={"candidate": artefact, "files": files})
    workload = Workload(load_model(pipeline.model), ())
    out = TakenOut(rewritten, tmp_path, workload, EvaluatorOptions("replay"))
    request = out.side("it", artefact).request
    assert request.model == tmp_path / "candidate" / "model.onnx"
    assert str(request.route) == "-speed=fast"
    default = out.side("it", entry.default).request
    assert default.model == tmp_path / "sources" / "model.onnx"
