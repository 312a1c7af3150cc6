"""Metrics and averages: what they are made of and what ``update`` is given (NNX613, NNX614, NNX619, NNX620)."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import LibClass, UserClass, method_of
from nnx_lint.model.containers import ReturnedDict
from nnx_lint.model.events import Iterated, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Array, ClassVal, Const, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.edits import insert, remove_statement, replace
from nnx_lint.rules.filters.coverage import leaves_of, path_text
from nnx_lint.rules.filters.expressions import ARRAY
from nnx_lint.rules.program import (
    ancestors,
    block_of,
    canonical_of,
    given,
    is_tried,
    keyword_node,
)
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_rules.layers import is_fractional
from nnx_rules.rules import training as rules
from nnx_rules.shape_algebra import is_whole

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module

MEASURED = ("nnx.metrics.Average", "nnx.metrics.Welford")
DECLARED = frozenset({"reset", "update", "compute"})
"""The methods that the base of metrics declares."""

# -- update ------------------------------------------------------------------------------------------------------------


@judges_calls(rules.METRIC_MISSING_ARGUMENT, ".update")
def metric_missing_argument(event: Called, report: Reporter) -> None:
    callee = event.callee
    receiver = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    if not isinstance(receiver, Obj) or "**" in event.keywords or None in event.args:
        return
    names = [name for name in event.keywords if name != "mask"]
    for metric in _metrics(receiver):
        missing = next((name for name in _needs(metric) if name not in names), None)
        if missing is None:
            continue
        shown = ", ".join(f"`{name}=`" for name in names) or "no argument"
        module = event.frame.module
        fix = partial(_rename, module, event, names, missing) if metric is receiver else None
        report(module, event.node, fix=fix, cls=metric.cls.name, name=missing, given=shown)
        return


@judges_calls(rules.METRIC_ARGUMENT, ".update")
def argument_by_position(event: Called, report: Reporter) -> None:
    """A value without a name, of metrics that a caller named, or that are not known; of others NNX613 tells it."""
    callee = event.callee
    receiver = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    if not isinstance(receiver, Obj) or not event.args or event.keywords or is_tried(event.frame.module, event.node):
        return
    several = getattr(receiver.cls, "canonical", None) == "nnx.metrics.MultiMetric"
    if any(map(_needs, _metrics(receiver))):
        return
    if several and not (receiver.assumed and event.frame.module.project.heirs.possible("MultiMetric")):
        problem = "`update` takes no value by position, as each metric takes its own by their names"
        mend = "pass all by name: `update(logits=..., labels=...)`"
        report(event.frame.module, event.node, cls="MultiMetric", problem=problem, mend=mend)
    elif getattr(receiver.cls, "canonical", None) in MEASURED and receiver.args is not None:
        problem = "`update` takes no value by position, as a metric knows its values by a name"
        mend = "pass it by the name that the metric was made with: `update(**{name: value})`"
        report(event.frame.module, event.node, cls=receiver.cls.name, problem=problem, mend=mend)


@judges_calls(rules.METRIC_ARGUMENT, ".update")
def argument_of_another(event: Called, report: Reporter) -> None:
    """Several metrics at once get all arguments, so that each has to take those of the others too."""
    callee = event.callee
    receiver = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    if not isinstance(receiver, Obj) or getattr(receiver.cls, "canonical", None) != "nnx.metrics.MultiMetric":
        return
    held = (receiver.args or {}).values() if "**" not in (receiver.args or {}) else ()
    for metric in (item for item in held if isinstance(item, Obj) and isinstance(item.cls, UserClass)):
        found = method_of(metric.cls, "update") if not metric.cls.is_open else None
        func = found[1] if found is not None else None
        if not isinstance(func, FuncVal) or func.decorators or func.node.args.kwarg is not None:
            continue
        taken = syntax_parameters.names(func.node.args)
        foreign = next((name for name in event.keywords if name not in {"**", "mask", *taken}), None)
        if foreign is not None and not is_tried(event.frame.module, event.node):
            problem = f"`{metric.cls.name}.update` takes no `{foreign}`, and gets all arguments of the others too"
            mend = "let it take what it does not know: `def update(self, *, ..., **_)`"
            report(event.frame.module, event.node, cls="MultiMetric", problem=problem, mend=mend)
            return


ONE_HOT = frozenset({"jax.nn.one_hot", "nnx.one_hot"})


@judges_calls(rules.METRIC_ARGUMENT, ".update")
def labels_one_hot(event: Called, report: Reporter) -> None:
    callee = event.callee
    receiver = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    node = keyword_node(event.node, "labels")
    if not isinstance(receiver, Obj) or not isinstance(node, ast.Call) or not node.args:
        return
    if canonical_of(event.frame.env, node.func) in ONE_HOT and any(
        getattr(metric.cls, "canonical", None) == "nnx.metrics.Accuracy" for metric in _metrics(receiver)
    ):
        problem, mend = "labels are numbers of classes, not one-hot vectors", f"pass `labels={text_of(node.args[0])}`"
        report(event.frame.module, node, cls="Accuracy", problem=problem, mend=mend)


@judges_calls(rules.METRIC_ARGUMENT, ".update")
def ranks_of_accuracy(event: Called, report: Reporter) -> None:
    """Without a threshold there is one number for each class, and so an axis more than labels have; with one none. Of
    one number alone, the largest is always the first.
    """
    callee = event.callee
    receiver = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    logits, labels = (event.keywords.get(name) for name in ("logits", "labels"))
    shapes = [value.form.shape for value in (logits, labels) if isinstance(value, Array) and value.form is not None]
    ranks = [len(shape) for shape in shapes if shape is not None and is_whole(shape)]
    dtype = labels.form.dtype if isinstance(labels, Array) and labels.form is not None else None
    node = keyword_node(event.node, "labels")
    one_hot = isinstance(node, ast.Call) and canonical_of(event.frame.env, node.func) in ONE_HOT
    single = bool(shapes) and isinstance(logits, Array) and logits.form is not None and (shapes[0] or (0,))[-1] == 1
    if not isinstance(receiver, Obj) or (len(ranks) < 2 and not is_fractional(dtype) and not single) or one_hot:
        return
    for metric in _metrics(receiver):
        limit = (metric.args or {}).get("threshold", Const(None))
        if getattr(metric.cls, "canonical", None) != "nnx.metrics.Accuracy" or not isinstance(limit, Const):
            continue
        plain = limit.value is None
        if plain and single and (len(ranks) < 2 or ranks[0] == ranks[1] + 1):
            problem = "logits have one number for each example, so that it takes each for one of class 0"
            mend = "give it a threshold, and logits without that axis: `Accuracy(threshold=0.0)`, `logits.squeeze(-1)`"
            place = keyword_node(event.node, "logits") or event.node
            report(event.frame.module, place, cls="Accuracy", problem=problem, mend=mend)
            return
        if len(ranks) < 2 or ranks[0] == ranks[1] + plain:
            if is_fractional(dtype) and node is not None and not is_tried(event.frame.module, node):
                problem, mend = f"labels are numbers of classes, and these are {dtype}", "read them as `jnp.int32`"
                report(event.frame.module, node, cls="Accuracy", problem=problem, mend=mend)
                return
        else:
            problem = f"logits have {ranks[0]} axes and labels {ranks[1]}"
            mend = "without a threshold, logits have one axis more: that of the classes"
            if not plain:
                mend = "with a threshold, both have the same axes: one number for each label"
            report(event.frame.module, event.node, cls="Accuracy", problem=problem, mend=mend)
            return


def _metrics(receiver: Obj) -> list[Obj]:
    """The metrics of the library that an ``update`` reaches."""
    name = getattr(receiver.cls, "canonical", None)
    if name != "nnx.metrics.MultiMetric":
        return [receiver] if receiver.args is not None else []
    held = [] if receiver.args is None or "**" in receiver.args else list(receiver.args.values())
    return [item for item in held if isinstance(item, Obj) and item.args is not None]


def _needs(metric: Obj) -> tuple[str, ...]:
    name = getattr(metric.cls, "canonical", None)
    if name == "nnx.metrics.Accuracy":
        return ("logits", "labels")
    argument = (metric.args or {}).get("argname", Const("values"))
    if name in MEASURED and isinstance(argument, Const) and isinstance(argument.value, str):
        return (argument.value,)
    return ()


def _rename(module: Module, event: Called, names: list[str], missing: str) -> Fix | None:
    """Give the only argument the name that the metric knows it by."""
    keywords = event.node.keywords if isinstance(event.node, ast.Call) else []
    found = next((item for item in keywords if names == [item.arg]), None)
    if found is None or found.arg is None or not missing.isidentifier():
        return None
    span = module.source.span(found)
    start = type(span)(span.start, span.start + len(found.arg))
    return Fix(f"Pass it as `{missing}`", (Edit(start, missing),))


# -- construction ------------------------------------------------------------------------------------------------------


@judges_calls(rules.METRIC_ARGUMENT, "nnx.metrics.MultiMetric")
def metric_argument(event: Called, report: Reporter) -> None:
    module = event.frame.module
    for name, value in event.keywords.items():
        node = keyword_node(event.node, name) or event.node
        if name in DECLARED | {"split"}:
            problem = f"a metric called `{name}` would hide the method"
            report(module, node, cls="MultiMetric", problem=problem, mend="give it another name")
        elif isinstance(value, ClassVal) and value.cls.derives_from("nnx.metrics.Metric"):
            problem = f"`{name}` is {value.describe()}, not a metric"
            mend = f"make one: `{module.source.segment(node)}()`"
            plain = isinstance(node, (ast.Name, ast.Attribute))
            fix = Fix("Make one", insert(module.source.span(node).end, "()")) if plain else None
            report(module, node, fix=fix, cls="MultiMetric", problem=problem, mend=mend)
        elif isinstance(value, (Array, Const)):
            problem = f"`{name}` is {value.describe()}, which is no metric"
            mend = "pass metrics, such as `nnx.metrics.Average()`"
            report(module, node, cls="MultiMetric", problem=problem, mend=mend)


@judges_calls(rules.METRIC_ARGUMENT, "nnx.metrics.Accuracy")
def threshold(event: Called, report: Reporter) -> None:
    args = given(event)
    value, node = args.get(0, "threshold"), args.node_of(0, "threshold")
    if node is not None and isinstance(value, Const) and isinstance(value.value, int):
        problem = f"threshold={value.value!r} is an integer, and has to be a float"
        mend, source = str(float(value.value)), event.frame.module.source
        fix = Fix(f"Write {mend}", replace(source, node, mend)) if isinstance(node, ast.Constant) else None
        report(event.frame.module, node, fix=fix, cls="Accuracy", problem=problem, mend=f"write {mend}")


@judges(rules.METRIC_ARGUMENT, Used, when=lambda event: event.what == "an index")
def result_unknown_key(event: Used, report: Reporter) -> None:
    """What several metrics compute is a dict that has their names for keys."""
    node, value, module = event.node, event.value, event.frame.module
    key = node.slice.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
    if not isinstance(value, ReturnedDict) or not isinstance(key, str) or not value.exact or is_tried(module, node):
        return
    names = [name.value for name, _ in value.items if isinstance(name, Const) and isinstance(name.value, str)]
    if key in names or not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return
    problem = f"what it computes has no item `{key}`"
    mend = f"its items have the names of the metrics: {', '.join(f'`{name}`' for name in names)}"
    report(module, node, cls="MultiMetric", problem=problem, mend=mend)


@judges(rules.METRIC_ARGUMENT, Iterated)
def result_iterated(event: Iterated, report: Reporter) -> None:
    """``for name, value in metrics.compute()``: a dict goes over its keys."""
    value, target, module = event.value, event.target, event.frame.module
    if not isinstance(value, ReturnedDict) or not value.exact or not isinstance(target, ast.Tuple):
        return
    if any(isinstance(item, ast.Starred) for item in target.elts):
        return
    names = [name.value for name, _ in value.items if isinstance(name, Const) and isinstance(name.value, str)]
    if any(len(name) != len(target.elts) for name in names) and not is_tried(module, event.node):
        problem = f"what it computes is a dict, and a loop goes over its {len(names)} keys"
        mend = f"go over `{module.source.segment(event.node)}.items()`"
        report(module, event.node, cls="MultiMetric", problem=problem, mend=mend)


@judges_calls(rules.METRIC_CONTRACT, ".__init__", *(f".{name}" for name in sorted(DECLARED)))
def metric_contract(event: Called, report: Reporter) -> None:
    """A method is called that the base class only declares."""
    callee = event.callee
    if not isinstance(callee, BoundMethod) or callee.func is not None:
        return
    receiver = present(callee.receiver)
    if not isinstance(receiver, Obj) or not _is_own(receiver.cls):
        return
    cls, module = receiver.cls.name, event.frame.module
    if callee.name == "__init__":
        problem = "calls `__init__` of `nnx.Metric`, which only says that there has to be one"
        report(module, event.node, fix=partial(_left_out, event), cls=cls, problem=problem, mend="leave that call out")
    elif callee.name not in receiver.attrs:
        problem = f"has no `{callee.name}` of its own, and that of `nnx.Metric` only says that there has to be one"
        report(module, event.node, cls=cls, problem=problem, mend=f"define `{callee.name}` in the class")


@judges_calls(rules.METRIC_CONTRACT, *(f".{name}" for name in sorted(DECLARED)))
def contract_of_several(event: Called, report: Reporter) -> None:
    """A method of several metrics at once, which calls that of each."""
    callee = event.callee
    receiver = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    if not isinstance(callee, BoundMethod) or not isinstance(receiver, Obj):
        return
    if getattr(receiver.cls, "canonical", None) != "nnx.metrics.MultiMetric" or "**" in (receiver.args or {}):
        return
    for name, metric in (receiver.args or {}).items():
        if not isinstance(metric, Obj) or not isinstance(metric.cls, UserClass) or not _is_own(metric.cls):
            continue
        if method_of(metric.cls, callee.name) is None and metric.cls.find(callee.name) is None:
            calls = f"of the metrics calls that of `{name}`"
            problem = f"has no `{callee.name}` of its own, and `{callee.name}` {calls}"
            if callee.name not in metric.attrs and not is_tried(event.frame.module, event.node):
                mend = f"define `{callee.name}` in the class"
                report(event.frame.module, event.node, cls=metric.cls.name, problem=problem, mend=mend)


def _left_out(event: Called) -> Fix | None:
    module = event.frame.module
    statement = next(ancestors(module, event.node), None)
    if not isinstance(statement, ast.Expr):
        return None
    edits = remove_statement(module.source, block_of(module, statement), statement)
    return Fix("Leave the call out", edits) if edits is not None else None


def _is_own(cls: object) -> bool:
    """Whether a class of the project is a metric without one of the library's between it and the base of metrics."""
    if not isinstance(cls, UserClass) or cls.is_open or cls.opaque:
        return False
    return cls.library is not None and cls.library.canonical == "nnx.metrics.Metric"


@judges_calls(rules.METRIC_CONTRACT, "class")
def metric_without_init(event: Called, report: Reporter) -> None:
    cls = event.callee.cls if isinstance(event.callee, ClassVal) else None
    if (
        isinstance(cls, UserClass)
        and _is_own(cls)
        and cls.find("__init__") is None
        and not cls.generated_init
        and not cls.remade
    ):
        problem = "has no `__init__` of its own, and that of `nnx.Metric` only says that there has to be one"
        report(event.frame.module, event.node, cls=cls.name, problem=problem, mend="define `__init__` in the class")


# -- averages of models ------------------------------------------------------------------------------------------------


@judges_calls(rules.EMA_OF_OTHER_VALUES, "nnx.EMA")
def ema_of_other_values(event: Called, report: Reporter) -> None:
    args = given(event)
    model = present(args.get(0, "params") or UNKNOWN)
    if "only" in event.keywords or args.starred or not isinstance(model, Obj) or not model.cls.is_pytree:
        return
    module = event.frame.module
    for leaf in leaves_of(model, event.frame).leaves:
        if leaf.type is ARRAY and report.runs_on(module)[0] == "flax":
            value = "an array"
        elif isinstance(leaf.type, LibClass) and leaf.type.canonical == "nnx.RngKey":
            value = "a random key"
        else:
            continue
        report(module, event.node, fix=partial(_only_params, module, event), path=path_text(leaf), value=value)
        return


def _only_params(module: Module, event: Called) -> Fix | None:
    name = spelled("nnx.Param", module, event.frame.env)
    call = event.node
    if name is None or not isinstance(call, ast.Call):
        return None
    last = max(module.source.span(part).end for part in (*call.args, *call.keywords))
    return Fix("Average the Params", insert(last, f", only={name}"))
