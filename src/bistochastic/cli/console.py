"""What the command line says, and how it ends when something is in the way."""

import errno
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from bistochastic.core.errors import InputError, OutputError, listed
from bistochastic.core.progress import Progress as Step
from bistochastic.core.progress import heard, kept

BUG, USAGE, INPUT, OUTPUT, SHORT = 1, 2, 3, 4, 5
INTERRUPTED, TERMINATED, CLOSED = 130, 143, 141
ENDS = [getattr(signal, n) for n in ("SIGTERM", "SIGHUP") if hasattr(signal, n)]
CLOSED_OUT = sys.stdout is None
LISTED = 12  # the most files that a closing sentence names


OPTIONS = {
    "n_clusters": "--clusters",
    "n_neighbors": "--neighbors",
    "min_cluster_size": "--min-size",
    "n_jobs": "--jobs",
    "device": "--device",
    "random_state": "--seed",
    "max_iter": "--max-iter",
    "unsupported": "--unsupported",
    "metric": "--metric",
    "method": "--method",
    "tol": "--tol",
}
GIVEN = re.compile(r"\b(" + "|".join(OPTIONS) + r")=[\"']?([\w.+-]+)[\"']?")
NAMED = re.compile(
    r"(?<![-\w])(n_clusters|n_jobs|n_neighbors|min_cluster_size|max_iter)\b"
)


def as_options(text: str) -> str:
    """Write the parameters that a message names as options of the command line."""
    text = GIVEN.sub(lambda found: f"{OPTIONS[found[1]]} {found[2]}", text)
    return NAMED.sub(lambda found: OPTIONS[found[1]], text)


class UsageError(InputError):
    """An option has a value that it cannot have."""


class Terminated(KeyboardInterrupt):
    """The system asked the program to end."""


class Voice:
    """Speaks to people: results on one stream, all else on the other.

    Parameters
    ----------
    quiet : bool
        Whether to say nothing but errors.
    verbose : bool
        Whether to say more.
    data : bool
        Whether standard output is taken by labels or JSON.
    """

    def __init__(
        self, quiet: bool = False, verbose: bool = False, data: bool = False
    ) -> None:
        self.quiet, self.verbose = quiet, verbose
        self.err = Console(stderr=True, highlight=False, soft_wrap=not os.isatty(2))
        out = Console(highlight=False, soft_wrap=not os.isatty(1))
        self.out = self.err if data else out
        self.written: list[str] = []
        self.planned: list[str] = []
        self.known_as: dict[str, str] = {}

    def _plain(self, text: str) -> str:
        """Return a text with files as the user named them, and nothing to steer."""
        for path, name in self.known_as.items():
            text = text.replace(path, name)
        return shown(text)

    def note(self, text: str, style: str = "dim") -> None:
        """Say something on the way."""
        if not self.quiet:
            self.err.print(Text(self._plain(text), style))

    def warn(self, text: str) -> None:
        """Say something that should be heeded."""
        if not self.quiet:
            text = self._plain(as_options(text))
            self.err.print(Text.assemble(("Note: ", "yellow"), text))

    def fail(self, text: str) -> None:
        """Say what went wrong."""
        text = self._plain(as_options(text))
        self.err.print(Text.assemble(("Error: ", "bold red"), text))

    def put(self, text: str) -> None:
        """Write data to standard output, all of it or with a sentence."""
        try:
            if CLOSED_OUT:
                raise OSError(errno.EBADF, "it is closed")
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise OutputError(f"Standard output was not written: {why}.") from None

    def tell(self, thing: Any = "") -> None:
        """Say something of the result."""
        if not self.quiet:
            self.out.print(Text(shown(thing)) if isinstance(thing, str) else thing)

    def wrote(self, path: Any, what: str) -> None:
        """Say that a file is complete."""
        self.note(f"Written: {path} ({what})")

    def ends(self) -> str:
        """Return what was kept, as a sentence."""
        if self.written:
            names = listed(dict.fromkeys(self.written), LISTED)
            return f"Complete: {names}; nothing is half-written."
        if self.planned:
            return "No file was written, and none was changed."
        return "Nothing is lost: no file was to be written."

    def closing(self, error: BaseException) -> str:
        """Return an error as sentences, with what was kept if anything was."""
        return f"{error} {self.ends()}" if self.written else str(error)

    @contextmanager
    def stage(self, text: str) -> Iterator[None]:
        """Show that something takes a while."""
        with self.bar() as bar:
            bar.add_task(shown(text), total=None)
            yield

    @contextmanager
    def fit(self, text: str) -> Iterator[None]:
        """Show how far a fit has come, with an estimate."""
        with self.bar(TimeRemainingColumn()) as bar:
            task = bar.add_task(f"{shown(text)}: neighbors", total=None)

            def follow(progress: Step) -> None:
                said = ""
                if progress.parts > 1:
                    said = f" {progress.part} of {progress.parts}"
                if progress.record:
                    number = progress.record.get("n_components")
                    said += f", step {progress.step}, {number} components"
                bar.update(
                    task,
                    total=1.0,
                    completed=progress.fraction,
                    description=f"{shown(text)}: graph{said}",
                )
                if self.verbose and progress.record:
                    record = progress.record
                    bar.console.print(
                        f"  {said.strip(', ')}: lambda {record.get('penalty', 0):.3g}, "
                        f"{record['seconds']:.2f} s",
                        style="dim",
                    )

            with heard(follow):
                yield

    def bar(self, *columns: ProgressColumn) -> Any:
        """Return a bar, or what stands for it where nobody looks."""
        if self.quiet or not self.err.is_terminal:
            return Silent(self.err)
        return Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            *columns,
            console=self.err,
            transient=True,
        )


class Silent:
    """Stands for a bar that is not shown.

    Parameters
    ----------
    console : Console
        Where lines go.
    """

    def __init__(self, console: Console) -> None:
        self.console = console

    def __enter__(self) -> "Silent":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def add_task(self, *args: object, **options: object) -> None:
        """Do nothing."""

    def update(self, *args: object, **options: object) -> None:
        """Do nothing."""


def shown(text: object) -> str:
    """Return a text without characters that could steer a terminal."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode()
        for c in str(text)
    )


@contextmanager
def guarded(voice: Voice) -> Iterator[None]:
    """End with a sentence and a number, whatever happens.

    Parameters
    ----------
    voice : Voice
        Says it.
    """
    began = time.perf_counter()

    def ended(number: int, frame: object) -> None:
        raise Terminated

    before = {number: signal.signal(number, ended) for number in ENDS}
    try:
        with kept(voice.written.append):
            yield
    except (Exception, KeyboardInterrupt) as error:
        sys.exit(_ending(voice, error, time.perf_counter() - began))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ending(voice: Voice, error: BaseException, seconds: float) -> int:
    """Say what happened, and return the number to end with."""
    match error:
        case Terminated():
            voice.fail(f"Stopped from outside. {voice.ends()}")
            return TERMINATED
        case KeyboardInterrupt():
            voice.fail(f"Interrupted after {seconds:.0f} s. {voice.ends()}")
            return INTERRUPTED
        case BrokenPipeError():
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return CLOSED
        case OutputError():
            voice.fail(voice.closing(error))
            return OUTPUT
        case MemoryError():
            voice.fail(f"There is not enough memory. {error} {voice.ends()}")
            return INPUT
        case InputError():
            voice.fail(voice.closing(error))
            return USAGE if isinstance(error, UsageError) else INPUT
        case OSError():
            name = f"{error.filename}: " if error.filename else ""
            voice.fail(f"{name}{error.strerror or error}. {voice.ends()}")
            return INPUT
    if voice.verbose:
        voice.err.print_exception()
    if isinstance(error, ValueError):  # of scikit-learn, about data
        voice.fail(voice.closing(error))
        return INPUT
    voice.fail(
        f"{type(error).__name__}: {error}. This is an error of bistochastic, not of "
        f"yours; --verbose shows where. {voice.ends()}"
    )
    return BUG


@contextmanager
def remarks() -> Iterator[list[str]]:
    """Collect what is warned about in the block, as sentences.

    Yields
    ------
    list of str
        Filled when the block ends.
    """
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield said
    for warning in caught:
        if issubclass(warning.category, UserWarning | RuntimeWarning):
            text = str(warning.message)
            if text not in said:
                said.append(text)
