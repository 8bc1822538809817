"""One case: its random numbers, its calls of the library, and what they broke."""

import time
import traceback
import warnings
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SLOWEST = 60  # seconds that a call may take
PLAIN = (UserWarning, "ConvergenceWarning")  # the warnings that the documentation has
CHECKS = ("sklearn/utils/validation.py", "sklearn/utils/_param_validation.py")


@dataclass
class Outcome:
    """What a call of the library came to."""

    value: Any = None
    error: BaseException | None = None
    warned: list = field(default_factory=list)  # names of categories
    said: list = field(default_factory=list)  # the texts of warnings

    @property
    def short(self):
        """Whether a warning says that the result falls short.

        Where warnings are errors, the first may hide another.
        """
        return "ConvergenceWarning" in self.warned or isinstance(self.error, Warning)


class Case:
    """A numbered case; its random numbers depend on seed and number only.

    Parameters
    ----------
    seed, number : int
        Which case.
    pulse : callable, optional
        Is told of every call before it begins, so that a hang can be named.
    """

    def __init__(self, seed, number, pulse=lambda what: None):
        self.rng = np.random.default_rng([seed, number])
        self.number = number
        self.kind = ""
        self.checks = Counter()
        self.violations = []
        self.notes = []
        self.refused = self.warned = False
        self._pulse = pulse
        mode = self.rng.random()
        self.raising = mode < 0.15  # np.errstate(all="raise") set by the caller
        self.strict = 0.15 <= mode < 0.25  # warnings are errors
        if self.raising:
            self.note('under np.errstate(all="raise")')
        if self.strict:
            self.note("warnings are errors")

    def chance(self, share):
        """Be true in this share of the cases."""
        return bool(self.rng.random() < share)

    def pick(self, *choices):
        """Choose one."""
        return choices[self.rng.integers(len(choices))]

    def note(self, text):
        """Remember what was drawn, for whoever looks at this case alone."""
        self.notes.append(text)

    def check(self, promise, holds, detail=""):
        """Count a check of a promise, and keep it if it was broken."""
        self.checks[promise] += 1
        if not holds:
            text = detail() if callable(detail) else detail
            self.violations.append((promise, " ".join(str(text).split())[:300]))
        return bool(holds)

    def call(self, what, function, *args, **options):
        """Call the library; judge its time, its errors and its warnings."""
        self._pulse(what)
        self.note(what)
        made = Outcome()
        clock, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("error" if self.strict else "always")
            try:
                with np.errstate(all="raise") if self.raising else nullcontext():
                    made.value = function(*args, **options)
            except Exception as error:
                made.error = error
        # on a busy machine a call waits; the time of the processor is its own
        spent = min(time.perf_counter() - clock, time.process_time() - cpu)
        limit = f"over {SLOWEST} s"
        self.check("in time", spent <= SLOWEST, f"{what}: {spent:.0f} s, {limit}")
        made.warned = [warning.category.__name__ for warning in seen]
        made.said = [str(warning.message) for warning in seen]
        for warning in seen:
            self._judge_warning(what, warning.category, warning.message)
        if made.error is not None:
            self._judge_error(what, made.error)
        self._pulse("what it gave")
        return made

    def _judge_warning(self, what, category, message):
        self.warned = True
        known = category is PLAIN[0] or category.__name__ == PLAIN[1]
        self.check(
            "only documented warnings",
            known,
            lambda: f"{what}: {category.__name__}: {message}",
        )

    def _judge_error(self, what, error):
        if isinstance(error, Warning):  # warnings are errors in this case
            return self._judge_warning(what, type(error), error)
        self.refused = True
        self.note(f"  {type(error).__name__}: {error}")
        self.check(
            "only documented errors",
            documented(error),
            lambda: f"{what}: {type(error).__name__}: {error} ({place(error)})",
        )
        return None


def documented(error):
    """Tell whether an error is the package's, or scikit-learn's about an array."""
    from bistochastic.core.errors import InputError

    if isinstance(error, InputError):
        return len(str(error).split()) > 2
    if type(error) not in (ValueError, TypeError):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    return any(last.replace("\\", "/").endswith(name) for name in CHECKS)


def place(error):
    """Return the innermost lines of an error, in the package and in all."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if "/bistochastic/" in frame.filename]
    places = [
        f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
        for frame in (frames[-1], *inside[-1:])
    ]
    return " < ".join(dict.fromkeys(places))
