"""What the command `reproduce` does."""

import os
from pathlib import Path

from rich.progress import MofNCompleteColumn, TimeRemainingColumn

from bistochastic.cli.console import UsageError
from bistochastic.cli.outputs import check_outputs
from bistochastic.core.errors import FileError, MissingError, listed, several
from bistochastic.core.parameters import check_jobs
from bistochastic.datasets.load import FOLDER, PAPER, load
from bistochastic.paper import page, runs
from bistochastic.paper.protocol import METHODS, PROTOCOLS, TOYS

RECORDS = (".jsonl", ".jsonl.gz")


def reproduce(voice, *, sets, methods, protocols, data, records, out, jobs, figures):
    """Run what has no record yet, and write tables, figures and the page.

    Parameters
    ----------
    voice : Voice
        Speaks.
    sets, methods, protocols : list of str
        Which of them; all by default.
    data : str or None
        The folder with the sets.
    records, out : str
        Where records are kept, and where tables and figures go.
    jobs : int or None
        How many processes.
    figures : bool
        Whether to draw the figures.
    """
    chosen = {
        "--set": (sets or PAPER, PAPER),
        "--method": (methods or METHODS, METHODS),
        "--protocol": (protocols or PROTOCOLS, PROTOCOLS),
    }
    for option, (given, known) in chosen.items():
        for name in given:
            if name not in known:
                raise UsageError(f"{option} {name}: there are {listed(known, 20)}.")
    check_jobs("n_jobs", jobs)
    _check_outputs(voice, sets, data, records, figures)
    there = []
    for name in sets or PAPER:
        try:
            load(name, folder=data)
            there.append(name)
        except FileError as error:
            voice.warn(str(error))
    todo = runs.wanted(
        there, methods or METHODS, protocols or PROTOCOLS, TOYS if not sets else ()
    )
    known = runs.records(records)
    done = sum(cell.key in known for cell in todo)
    voice.note(
        f"{several(len(todo), 'run')} of {several(len(there), 'set')}, {done:,} of "
        f"them recorded in {records}."
    )
    with voice.bar(MofNCompleteColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task("Runs", total=len(todo), completed=done)

        def follow(count, record):
            text = f"{record['set']}, {record['method']}"
            bar.update(task, completed=count, description=text)
            if voice.verbose:
                best = max(score["ACC"] for score in record["scores"])
                bar.console.print(f"{record['key']}: ACC {best}, {record['seconds']} s")

        found = runs.run(todo, records, folder=data, jobs=jobs, listen=follow)
    with voice.stage("Tables and figures"):
        made = page.write(Path(out), list(found.values()), data=data, drawn=figures)
    for text in page.sentences(list(found.values())):
        voice.tell(text)
    voice.tell(f"The page: {made}")


def _check_outputs(voice, sets, data, records, figures):
    """Say what is in the way, or lacks, before hours of runs."""
    page.check_installed(drawn=False)
    if figures:
        try:
            page.check_installed()
        except MissingError as error:
            raise MissingError(f"{error}; --no-figures works without it.") from None
    if records.lower().endswith(RECORDS):
        Path(records).parent.mkdir(parents=True, exist_ok=True)
    folder = data or os.environ.get(FOLDER)
    inputs = [Path(folder) / f"{name}.npz" for name in sets or PAPER] if folder else []
    check_outputs(
        voice, inputs, {"records": records}, True, endings={"records": RECORDS}
    )
