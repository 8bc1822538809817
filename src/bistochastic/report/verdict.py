"""What speaks for the clusters and against them, and what that comes to."""

from typing import Any

from bistochastic.report.geometry import BORDER, Sureness, valley
from bistochastic.report.subject import Run

Sign = dict[str, str]  # name, value, level and a sentence
UNLIKE = 0.3  # adjusted Rand index below which clusters are not what labels say
WANTED = (
    ({"Agreement over k"}, "no other number of neighbors was tried"),
    ({"Mean confidence"}, "how sure rows are is not known"),
    ({"Spacing at borders", "Rows at borders"}, "spacing at borders was not measured"),
)
GOOD, FAIR, POOR = "good", "fair", "poor"


def tried(run: Run) -> bool:
    """Tell whether other numbers of neighbors, or refinements, were tried."""
    return len(getattr(run.model, "trials_", ())) > 1


def signs(run: Run, sure: Sureness | None) -> list[Sign]:
    """Return what speaks for the clusters and against them.

    Parameters
    ----------
    run : Run
        The run.
    sure : Sureness or None
        How sure each assignment is.

    Returns
    -------
    list of dict
        For each sign its name, value, level and a sentence.
    """
    if run.number == run.labels.size > 1:
        text = "Every row is a cluster of its own: there is nothing to judge."
        alone = _sign("Number of clusters", f"{run.number:,}", POOR, text)
        return [*_count_signs(run), alone]
    found = _count_signs(run)
    if run.number > 1 and tried(run):
        found.append(_agreement_sign(run))
    if run.number > 1 and sure is not None:
        found += [_confidence_sign(sure), *_gap_signs(run, sure)]
    history = getattr(run.model, "history_", ())
    forced = [record for record in history if record.get("action") == "cut"]
    if forced:
        text = (
            "Some clusters had to be cut out of a connected graph to reach the number."
        )
        found.append(_sign("Forced cuts", f"{len(forced)}", POOR, text))
    return found


def _sign(name: str, value: str, level: str, text: str) -> Sign:
    """Return what speaks for the clusters, or against them."""
    return {"name": name, "value": value, "level": level, "text": text}


def _count_signs(run: Run) -> list[Sign]:
    """Tell whether as many clusters came out as were asked for."""
    asked = getattr(run.model, "n_clusters", None)
    if asked in (None, "auto", run.number):
        return []
    text = f"{asked} clusters were asked for."
    return [_sign("Number of clusters", f"{run.number}", POOR, text)]


def _agreement_sign(run: Run) -> Sign:
    """Tell whether other numbers of neighbors give the same clusters."""
    value = run.model.stability_ + 0.0
    level = GOOD if value >= 0.9 else FAIR if value >= 0.7 else POOR
    text = {
        GOOD: "Other numbers of neighbors give nearly the same clusters.",
        FAIR: "Other numbers of neighbors move some rows.",
        POOR: "Other numbers of neighbors give other clusters.",
    }[level]
    return _sign("Agreement over k", f"{value:.2f}", level, text)


def _confidence_sign(sure: Sureness) -> Sign:
    """Tell whether rows have their neighbors in their own cluster."""
    value = float(sure.own.mean())
    level = GOOD if value >= 0.9 else FAIR if value >= 0.75 else POOR
    cut = f"{1 - value:.1%} of the weight of the neighbors was cut"
    text = {
        GOOD: f"Rows have nearly all their neighbors in their cluster: {cut}.",
        FAIR: f"Many rows have neighbors in other clusters: {cut}.",
        POOR: f"Rows have many of their neighbors in other clusters: {cut}.",
    }[level]
    return _sign("Mean confidence", f"{value:.2f}", level, text)


def _gap_signs(run: Run, sure: Sureness) -> list[Sign]:
    """Tell whether the borders run through sparse regions."""
    border = float((sure.own < BORDER).mean())
    if border < 0.02:
        text = "Hardly any row lies between clusters."
        return [_sign("Rows at borders", f"{border:.1%}", GOOD, text)]
    ratio = valley(run.model, run.X, sure)
    if ratio is None:
        return []
    level = GOOD if ratio >= 1.2 else FAIR if ratio >= 1.05 else POOR
    text = {
        GOOD: "It is sparser at the borders than inside the clusters: there are gaps.",
        FAIR: "It is hardly sparser at the borders than inside the clusters.",
        POOR: "The borders run through regions as dense as the clusters: there are no "
        "gaps, and the cuts could have been made elsewhere.",
    }[level]
    return [_sign("Spacing at borders", f"{ratio:.2f} times", level, text)]


def verdict(found: list[Sign], labels: dict[str, Any] | None = None) -> tuple[str, str]:
    """Return a level and a sentence from the signs.

    Parameters
    ----------
    found : list of dict
        What `signs` returns.
    labels : dict, optional
        What `compared` returns.

    Returns
    -------
    level, text : str
        What the signs say together.
    """
    level, text = _judged(found)
    if labels and labels["scores"]["adjusted Rand index"] < UNLIKE:
        text += " They are not what the given labels tell apart."
    return level, text


def _judged(found: list[Sign]) -> tuple[str, str]:
    levels = [one["level"] for one in found]
    poor = [one["name"].lower() for one in found if one["level"] == POOR]
    if not levels:
        return FAIR, "There is nothing here to judge the clusters by."
    if len(poor) > 1 or "forced cuts" in poor or "number of clusters" in poor:
        return POOR, (
            f"Do not trust these clusters: {_speaking(poor)} against them. "
            "Another number of clusters, other columns or another scaling may fit "
            "better; or there are none."
        )
    if poor:
        return FAIR, (
            f"Take these clusters with care: {poor[0]} speaks against them. Look at "
            "the least certain rows, and try another number of clusters."
        )
    names = {one["name"] for one in found}
    untested = [text for any_of, text in WANTED if not any_of & names]
    if all(level == GOOD for level in levels) and not untested:
        return GOOD, "The clusters are clear: steady, sure, and apart."
    if all(level == GOOD for level in levels):
        return FAIR, (
            "What was looked at speaks for the clusters, but not all was: "
            f"{' and '.join(untested)}."
        )
    return FAIR, "The clusters are fair: most rows are sure, some are not."


def _speaking(names: list[str]) -> str:
    """Return names as a subject with its verb."""
    if len(names) == 1:
        return f"{names[0]} speaks"
    return f"{', '.join(names[:-1])} and {names[-1]} speak"
