"""Every error and warning has its entry on the page of troubleshooting."""

import ast
import re
from functools import cache
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
SOURCE = ROOT / "src" / "bistochastic"

HOLE = "{}"  # stands for what is inserted
HEAD = "words of the message"
SAYS = {"warnings.warn", "voice.warn", "voice.fail", "sys.exit"}
SPOKEN = {  # functions that make sentences, or parts, of messages
    "tables/prepare.py": {"_far_rows"},
    "tables/scales.py": {"counter_warnings"},
    "cli/console.py": {"ends"},
    "core/result.py": {"_told"},
    "io/sandbox.py": {"_end"},
    "io/text_dialect.py": {"why_no_number"},
    "scaling/support.py": {"__str__"},
}
EXCEPTIONS = {  # words of one's own are missing; the page has most in plain text
    ("__init__.py", "module {} has no attribute {}"): "as Python says it",
    ("cluster/base.py", "{} object has no attribute {}"): "as Python says it",
    ("tables/preparation.py", "no preparation"): "caught, and said in other words",
    ("io/hdf.py", "{} has no {}."): "two common words",
    ("io/text_dialect.py", "{} has more than {} columns."): "common words",
    ("io/text.py", "{}: row {} of column {} is {}, {}"): "why_no_number has the rest",
    ("core/parameters.py", "{}={}: {} must be {}."): "kinds of limits have the rest",
    ("singlecell.py", "n_pcs={}: {} has {} columns."): "a name and common words",
}


class Module:
    """A file of the source: its functions and the texts that have names."""

    def __init__(self, path):
        self.name = path.relative_to(SOURCE).as_posix()
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.functions = {f.name: f for f in functions(self.tree)}
        self.constants = named(self.tree.body)

    def names(self, function):
        return self.constants | named(ast.walk(function))


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def named(nodes):
    """Return what is assigned to each name, or added to it."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found


@cache
def modules():
    return [Module(path) for path in sorted(SOURCE.rglob("*.py"))]


def texts(node, names):
    """Return the texts that an expression can be."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return joined([texts(part, names) for part in node.values])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return joined([texts(node.left, names), texts(node.right, names)])
    if isinstance(node, ast.FormattedValue):
        return texts(node.value, names)
    if isinstance(node, ast.Name) and node.id in names:
        rest = {name: held for name, held in names.items() if name != node.id}
        held = names[node.id]
        return every([v for v in held if v.lineno < node.lineno] or held, rest)
    return every(choices(node), names) or [HOLE]


def choices(node):
    """Return the expressions that one of them stands for."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.Subscript):
        return [node.value] if isinstance(node.value, ast.Name | ast.Dict) else []
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, ast.List | ast.Tuple):
        return node.elts
    return [node.elt] if isinstance(node, ast.ListComp) else []


def every(nodes, names):
    return [text for node in nodes for text in texts(node, names)]


def joined(parts):
    return ["".join(pieces) for pieces in product(*parts)]


def returned(name, module):
    """Return the texts that a function of the module, or of another, makes."""
    holders = [module, *modules()]
    holder = next((held for held in holders if name in held.functions), None)
    if holder is None:
        return []
    function = holder.functions[name]
    values = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    values = [inner(value) for value in values if value is not None]
    return every(values, holder.names(function))


def inner(value):
    """Return the message of an error that is made, or the value."""
    made = isinstance(value, ast.Call) and ast.unparse(value.func).endswith("Error")
    return value.args[0] if made else value


def said(node):
    """Return the expression that a node says to the user, if it does."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return node.exc.args[:1]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in SAYS:
        return node.args[:1]
    if isinstance(node, ast.Tuple) and len(node.elts) == 2:
        category = node.elts[0]
        if isinstance(category, ast.Name) and category.id.endswith("Warning"):
            return node.elts[1:]
    return []


def messages(module):
    """Return the templates of a file."""
    found = []
    for function in functions(module.tree):
        names = module.names(function)
        for node in ast.walk(function):
            for message in said(node):
                if isinstance(message, ast.Call):
                    found += returned(ast.unparse(message.func), module)
                found += texts(message, names)
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                found += returned(ast.unparse(node.exc.func).split(".")[-1], module)
        if function.name in SPOKEN.get(module.name, ()):
            found += returned(function.name, module)
    return {plain(text) for text in found}


@cache
def templates():
    """Return all templates of two words or more, with their files."""
    return {
        (module.name, text)
        for module in modules()
        if not module.name.startswith("paper/")
        for text in messages(module)
        if len(words(text)) >= 2
    }


@cache
def literals():
    """Return all texts of the source but docstrings."""
    found = []
    for module in modules():
        nodes = list(ast.walk(module.tree))
        docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        held = [n for n in nodes if isinstance(n, ast.Constant | ast.JoinedStr)]
        found += every([node for node in held if id(node) not in docs], {})
    return {plain(text) for text in found}


def plain(text):
    return re.sub(r"(\{\})+", HOLE, " ".join(text.split()))


def words(text):
    return re.findall(r"[^\W\d_]+", text.replace(HOLE, " "))


@cache
def phrases():
    """Return the phrases in first columns of the tables of messages."""
    found, inside = [], False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        first = line.split("|")[1].strip() if line.startswith("|") else ""
        inside = bool(first) and (inside or first == HEAD)
        found += re.findall("`([^`]+)`", first) if inside else []
    return found


def test_every_message_has_an_entry():
    known = phrases()
    missing = sorted(
        message
        for message in templates() - EXCEPTIONS.keys()
        if not any(phrase in message[1] for phrase in known)
    )
    assert not missing


def test_every_exception_is_still_a_message():
    assert EXCEPTIONS.keys() <= templates()


def test_every_entry_has_words_of_a_message():
    known = literals() | {text for _, text in templates()}
    stale = [phrase for phrase in phrases() if not any(phrase in t for t in known)]
    assert not stale


def test_phrases_have_two_words_and_stand_once():
    known = phrases()
    assert len(known) > 200
    assert [phrase for phrase in known if len(words(phrase)) < 2] == []
    assert [phrase for phrase in known if known.count(phrase) > 1] == []


def classes(file):
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def test_every_class_of_errors_is_named():
    page = PAGE.read_text(encoding="utf-8")
    for node in classes("core/errors.py"):
        assert f"`{node.name}`" in page, node.name


def test_every_status_is_named():
    (status,) = (node for node in classes("core/run.py") if node.name == "Status")
    values = [node.value.value for node in status.body if isinstance(node, ast.Assign)]
    assert len(values) == 5
    assert [value for value in values if value not in phrases()] == []
