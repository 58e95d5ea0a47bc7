"""Small questions are left to the interpreter, which answers as compiled code does, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.numeric import interpreting
from counterlvq.numeric import jit as tiers
from counterlvq.numeric.interpreting import compile_from_now_on, interpreted, is_interpreting
from counterlvq.numeric.jit import Kernel, jit, jit_unless_small, part
from tests.support.quick import some


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The steps that are left to the interpreter, as in a new process."""
    monkeypatch.setattr(interpreting.Budget, "left", interpreting._STEPS)
    return interpreting.Budget


@part
def _next(total, by):
    return total + by


def _count_of(times, counted):
    return times


def _counted(times, counted):
    for _ in range(times):
        counted[0] = _next(counted[0], 1.0)
    return counted[0]


def counter() -> Kernel:
    """Count in an array that is read and written, so that a second try has to find it as it was."""
    return jit_unless_small(_count_of, lambda times, counted: (counted,))(_counted)


def is_compiled(kernel: Kernel) -> bool:
    return kernel._compiled is not None


def test_few_steps_are_left_to_the_interpreter_and_counted(budget: Any) -> None:
    kernel, counted = counter(), np.zeros(1)
    assert kernel(7, counted) == 7.0
    assert not is_compiled(kernel)
    # What was said beforehand, and what calls of parts are worth.
    assert budget.left == interpreting._STEPS - 7 - 7 * tiers._STEPS_OF_CALL
    assert not is_interpreting()


def test_what_is_large_from_the_start_is_compiled_at_once(budget: Any) -> None:
    budget.left = 6.0
    kernel, counted = counter(), np.zeros(1)
    assert kernel(7, counted) == 7.0
    assert is_compiled(kernel)


def test_a_run_that_takes_long_is_given_up_and_begun_again(budget: Any) -> None:
    budget.left = 7.0 + 3.5 * tiers._STEPS_OF_CALL
    kernel, counted = counter(), np.full(1, 10.0)
    assert kernel(7, counted) == 17.0  # and not 20, as without putting back what was counted
    assert is_compiled(kernel)
    assert budget.left == 0.0


def test_a_process_that_answers_for_long_compiles_at_once(budget: Any) -> None:
    compile_from_now_on()
    kernel = counter()
    kernel(1, np.zeros(1))
    assert is_compiled(kernel)


def test_quotients_by_zero_are_infinite_whoever_divides(budget: Any) -> None:
    kernel = jit_unless_small(lambda x: 1.0)(lambda x: 1.0 / x)
    # Numbers of NumPy the interpreter divides without a word; of its own it refuses to.
    assert kernel(np.float64(0.0)) == inf
    assert not is_compiled(kernel)
    assert kernel(0.0) == inf
    assert is_compiled(kernel)


def test_a_kernel_within_another_is_a_run_of_its_own(budget: Any) -> None:
    inner = counter()
    outer = jit_unless_small(lambda times, counted: 1.0)(lambda *given: inner(*given) + 0.5)
    counted = np.zeros(1)
    assert outer(7, counted) == 7.5
    assert not is_compiled(inner)
    assert budget.left == interpreting._STEPS - 1 - 7 - 7 * tiers._STEPS_OF_CALL
    # Where steps run out, as for a question that a signal asks in between, it is answered as well.
    budget.left = 10.0
    assert outer(7, counted) == 14.5
    assert is_compiled(inner)


class _Timeout(ArithmeticError):
    """What somebody may raise from the handler of a signal."""


def test_errors_of_other_people_are_not_taken_for_quotients(budget: Any) -> None:
    def interrupted(x):
        raise _Timeout

    with pytest.raises(_Timeout):
        jit_unless_small(lambda x: 1.0)(interrupted)(1.0)


def test_other_errors_are_raised_and_leave_the_interpreter_as_it_was(budget: Any) -> None:
    kernel = jit_unless_small(lambda x: 1.0)(lambda x: x.missing)
    with pytest.raises(AttributeError, match="missing"):
        kernel(1.0)
    assert not is_interpreting()


def test_what_is_never_small_is_compiled(budget: Any) -> None:
    kernel = jit(lambda x: x + 1.0)
    assert kernel(1.0) == 2.0
    assert is_compiled(kernel)


# --- the same answers ---------------------------------------------------------------------------


@pytest.fixture
def by_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def run(self: Kernel, *given: Any) -> Any:
        if is_interpreting():
            return self.py_func(*given)
        return interpreted(self.py_func, inf, *given)[0]

    with monkeypatch.context() as patched:
        patched.setattr(Kernel, "__call__", run)
        yield


class Drawn:
    """Models, rows and rules at scales of their own, every class a target."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([7, seed])
        d, per_class = int(rng.integers(1, 7)), int(rng.integers(1, 4))
        self.scales = 10.0 ** rng.uniform(-6, 6, size=d) if seed % 3 == 0 else np.ones(d)
        prototypes = rng.normal(size=(3 * per_class, d))
        omega = [None, np.diag(rng.uniform(0, 2, size=d)), rng.normal(size=(d, d))][seed % 3 - 1]
        omega = None if omega is None else omega / self.scales
        labels = np.repeat(["a", "b", "c"], per_class)
        self.model = clvq.PrototypeModel(prototypes * self.scales, labels, omega)
        self.X = rng.normal(size=(4, d)) * self.scales
        self.X[1] = self.model.prototypes[0]  # as near as can be
        weights = rng.uniform(0.5, 2.0, size=d) / self.scales
        root = rng.normal(size=(d, d)) / self.scales
        self.costs: list[clvq.Cost] = [
            clvq.Manhattan(weights),
            clvq.Euclidean(),
            clvq.Mahalanobis(root.T @ root + np.diag(weights**2)),
        ]
        level = float(np.median(self.X[:, 0]))
        self.rules: list[list[Any]] = [
            [],
            [clvq.Bounds(0, upper=level)],
            [clvq.Freeze(0)],
            *(
                [[f"x0 * {1 / self.scales[0]:.17g} <= x1 * {1 / self.scales[1]:.17g}"]]
                if d > 1
                else []
            ),
        ]

    def answers(self, cost: clvq.Cost, rules: list[Any], **options: Any) -> list[Any]:
        """Everything that is answered, as bits."""
        found = []
        explainer = clvq.Explainer(self.model, cost, rules, **options)
        for target in ("a", "b", "c"):
            cfs = [explainer.explain(x, target) for x in self.X]
            batch = explainer.explain_batch(self.X, target)
            found += [(cf.status, cf.cost, cf.lower_bound, cf.prototype) for cf in cfs]
            found += [None if cf.x is None else np.asarray(cf.x).tobytes() for cf in cfs]
            found += [batch.X.tobytes(), batch.cost.tobytes(), batch.lower_bound.tobytes()]
        return found


SEEDS = some(range(60), quick=6)


@pytest.mark.parametrize("seed", SEEDS)
def test_plain_answers_do_not_depend_on_who_runs_the_kernel(
    seed: int, request: pytest.FixtureRequest
) -> None:
    compile_from_now_on()
    drawn = Drawn(seed)
    asked = [(cost, rules) for cost in drawn.costs for rules in drawn.rules]
    compiled = [drawn.answers(cost, rules) for cost, rules in asked]
    request.getfixturevalue("by_the_interpreter")
    assert [drawn.answers(cost, rules) for cost, rules in asked] == compiled


@pytest.mark.parametrize("seed", SEEDS)
def test_mixed_answers_do_not_depend_on_who_runs_the_kernel(
    seed: int, request: pytest.FixtureRequest
) -> None:
    compile_from_now_on()
    drawn = Drawn(3 * seed + 1)  # at scales where grids make sense
    d = drawn.X.shape[1]
    kinds = [{"decimals": 1}, {"kind": "whole"}, {"step": 0.25}, {}]
    columns = [clvq.Feature(f"x{j}", **kinds[(seed + j) % 4]) for j in range(d)]
    features = clvq.Features(columns)
    drawn.X = np.rint(drawn.X)
    asked = [(cost, rules) for cost in drawn.costs[:2] for rules in drawn.rules[:2]]
    asked.append((drawn.costs[0], [clvq.MinChange("x0", 0.5)]))
    rules = [(cost, [_named(rule) for rule in rules]) for cost, rules in asked]
    compiled = [drawn.answers(cost, own, features=features) for cost, own in rules]
    request.getfixturevalue("by_the_interpreter")
    assert [drawn.answers(cost, own, features=features) for cost, own in rules] == compiled


def _named(rule: Any) -> Any:
    return clvq.Bounds("x0", upper=rule.upper) if isinstance(rule, clvq.Bounds) else rule


# --- a new process ------------------------------------------------------------------------------

FIRST = """
import sys
import counterlvq as clvq

model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["a", "b"], feature_names=["x", "y"])
columns = clvq.Features([clvq.Feature("x", "whole"), clvq.Feature("y")])
for cost in (clvq.Manhattan(), clvq.Euclidean()):
    for features in (None, columns):
        row = [0.0, 0.0] if features is None else {"x": 0, "y": 0.0}
        cf = clvq.Explainer(model, cost, features=features).explain(row, "b")
        assert str(cf) and cf.status == "optimal", cf
assert "numba" not in sys.modules
clvq.Explainer(model).explain_batch([[0.0, 0.0]] * 100_000, "b")
assert "numba" in sys.modules
"""


def test_first_answers_need_no_compiler_and_large_batches_do() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FIRST], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


LIMITED = """
import counterlvq as clvq
from counterlvq.numeric.interpreting import compile_from_now_on

model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["a", "b"], feature_names=["x", "y"])
columns = clvq.Features([clvq.Feature("x", "whole"), clvq.Feature("y")])
explainer = clvq.Explainer(model, features=columns, time_limit=0.3)
compile_from_now_on()
print(explainer.explain({"x": 0, "y": 0.0}, "b").status)
"""


@pytest.mark.machine
def test_limits_of_time_do_not_count_what_is_compiled() -> None:
    """Loading compiled code takes longer than the limit, and the answer next to nothing."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("optimal\n", "")
