"""The command `reproduce`: the paper's experiments, run again."""

import os
from pathlib import Path
from typing import Any

from rich.progress import MofNCompleteColumn, TimeRemainingColumn

from bistochastic.cli.console import UsageError, Voice
from bistochastic.cli.outputs import check_outputs
from bistochastic.cli.request import Experiments
from bistochastic.core.errors import FileError, MissingError, listed, several
from bistochastic.core.parameters import check_jobs
from bistochastic.datasets.load import FOLDER, PAPER, load
from bistochastic.paper import page, runs
from bistochastic.paper.protocol import METHODS, PROTOCOLS, TOYS

RECORDS = (".jsonl", ".jsonl.gz")


def reproduce(voice: Voice, asked: Experiments) -> None:
    """Run what has no record yet, and write tables, figures and the page.

    Parameters
    ----------
    voice : Voice
        Speaks.
    asked : Experiments
        Which experiments, and where.
    """
    _check(voice, asked)
    there = _there(voice, asked)
    todo = runs.wanted(
        there,
        asked.methods or METHODS,
        asked.protocols or PROTOCOLS,
        TOYS if not asked.sets else (),
    )
    known = runs.records(asked.records)
    done = sum(cell.key in known for cell in todo)
    voice.note(
        f"{several(len(todo), 'run')} of {several(len(there), 'set')}, {done:,} of "
        f"them recorded in {asked.records}."
    )
    found = _run(voice, asked, todo, done)
    with voice.stage("Tables and figures"):
        made = page.write(Path(asked.out), found, data=asked.data, drawn=asked.figures)
    for text in page.sentences(found):
        voice.tell(text)
    voice.tell(f"The page: {made}")


def _check(voice: Voice, asked: Experiments) -> None:
    """Refuse what does not fit before anything is run."""
    chosen = {
        "--set": (asked.sets or PAPER, PAPER),
        "--method": (asked.methods or METHODS, METHODS),
        "--protocol": (asked.protocols or PROTOCOLS, PROTOCOLS),
    }
    for option, (given, known) in chosen.items():
        for name in given:
            if name not in known:
                raise UsageError(f"{option} {name}: there are {listed(known, 20)}.")
    check_jobs("n_jobs", asked.jobs)
    _check_outputs(voice, asked)


def _check_outputs(voice: Voice, asked: Experiments) -> None:
    """Say what is in the way, or lacks, before hours of runs."""
    page.check_installed(drawn=False)
    if asked.figures:
        try:
            page.check_installed()
        except MissingError as error:
            raise MissingError(f"{error}; --no-figures works without it.") from None
    records, names = asked.records, asked.sets or PAPER
    if records.lower().endswith(RECORDS):
        Path(records).parent.mkdir(parents=True, exist_ok=True)
    folder = asked.data or os.environ.get(FOLDER)
    inputs = [Path(folder) / f"{name}.npz" for name in names] if folder else []
    check_outputs(
        voice, inputs, {"records": records}, True, endings={"records": RECORDS}
    )


def _there(voice: Voice, asked: Experiments) -> list[str]:
    """Return the sets whose files are there, and say which are not."""
    there = []
    for name in asked.sets or PAPER:
        try:
            load(name, folder=asked.data)
            there.append(name)
        except FileError as error:
            voice.warn(str(error))
    return there


def _run(
    voice: Voice, asked: Experiments, todo: list[Any], done: int
) -> list[dict[str, Any]]:
    """Run what has no record yet, and show how far it has come."""
    with voice.bar(MofNCompleteColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task("Runs", total=len(todo), completed=done)

        def follow(count: int, record: dict[str, Any]) -> None:
            text = f"{record['set']}, {record['method']}"
            bar.update(task, completed=count, description=text)
            if voice.verbose:
                best = max(score["ACC"] for score in record["scores"])
                bar.console.print(f"{record['key']}: ACC {best}, {record['seconds']} s")

        records = runs.run(
            todo, asked.records, folder=asked.data, jobs=asked.jobs, listen=follow
        )
    return list(records.values())
