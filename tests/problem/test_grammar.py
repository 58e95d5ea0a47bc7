"""Constraint strings: what they mean, what is refused and how, and that nothing is executed."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from fractions import Fraction
from time import process_time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import counterlvq as clvq
from counterlvq.problem.expressions import Expression
from counterlvq.problem.grammar import Comparison, LevelTest, LinearForm, Promise, parse
from tests.support.quick import examples

bounded = settings(max_examples=examples(300))


# --- good strings -------------------------------------------------------------------------------

# Text, coefficients of the counterfactual, of the original, constant, sense: form sense 0.
GOOD = [
    ("a <= b", {"a": 1, "b": -1}, {}, 0, "<="),
    ("a >= 3", {"a": 1}, {}, -3, ">="),
    ("3 == a", {"a": -1}, {}, 3, "=="),
    ("2 * a <= 3", {"a": 2}, {}, -3, "<="),
    ("a * 2 <= 3", {"a": 2}, {}, -3, "<="),
    ("a / 4 <= 3", {"a": 0.25}, {}, -3, "<="),
    ("2 * 3 * a / 4 <= 1", {"a": 1.5}, {}, -1, "<="),
    ("a <= 3 / 10", {"a": 1}, {}, -0.3, "<="),
    ("a <= 1e3", {"a": 1}, {}, -1000, "<="),
    ("a <= 1.5E-1", {"a": 1}, {}, -0.15, "<="),
    ("a <= .5", {"a": 1}, {}, -0.5, "<="),
    ("a <= 5.", {"a": 1}, {}, -5, "<="),
    ("a<=b", {"a": 1, "b": -1}, {}, 0, "<="),
    ("  a\t<=\n b  ", {"a": 1, "b": -1}, {}, 0, "<="),
    ("-a <= -2", {"a": -1}, {}, 2, "<="),
    ("+a - -b <= 0", {"a": 1, "b": 1}, {}, 0, "<="),
    ("--a <= 0", {"a": 1}, {}, 0, "<="),
    ("a - b - c <= 0", {"a": 1, "b": -1, "c": -1}, {}, 0, "<="),
    ("a - (b - c) <= 0", {"a": 1, "b": -1, "c": 1}, {}, 0, "<="),
    ("2 * (a + 3) <= 4 * (b - 1)", {"a": 2, "b": -4}, {}, 10, "<="),
    ("(a + b) / 2 >= 1", {"a": 0.5, "b": 0.5}, {}, -1, ">="),
    ("a * (1 + 2) <= 0", {"a": 3}, {}, 0, "<="),
    ("-2 * -a <= 0", {"a": 2}, {}, 0, "<="),
    ("a + a <= 2 * a + b", {"a": 0, "b": -1}, {}, 0, "<="),
    ("(((a))) <= 1", {"a": 1}, {}, -1, "<="),
    ("a <= 1.2 * original(a)", {"a": 1}, {"a": -1.2}, 0, "<="),
    ("a - original(a) >= 2 * (b - original(b))", {"a": 1, "b": -2}, {"a": -1, "b": 2}, 0, ">="),
    ("original ( a ) <= a", {"a": -1}, {"a": 1}, 0, "<="),
    ("`1st floor` + 2 * garage == 300", {"1st floor": 1, "garage": 2}, {}, -300, "=="),
    ("`a <= b` <= 1", {"a <= b": 1}, {}, -1, "<="),
    ("a <= original(`1st floor`)", {"a": 1}, {"1st floor": -1}, 0, "<="),
    ("original <= 1", {"original": 1}, {}, -1, "<="),
    ("`original` <= original(original)", {"original": 1}, {"original": -1}, 0, "<="),
    ("x.y_z2 <= 1", {"x.y_z2": 1}, {}, -1, "<="),
    ("_a <= 1", {"_a": 1}, {}, -1, "<="),
    ("größe <= 年齢", {"größe": 1, "年齢": -1}, {}, 0, "<="),
    ("e1 <= 1e1", {"e1": 1}, {}, -10, "<="),
]


@pytest.mark.parametrize(
    ("text", "new", "old", "constant", "sense"), GOOD, ids=[row[0] for row in GOOD]
)
def test_good_string_is_read(
    text: str, new: dict[str, float], old: dict[str, float], constant: float, sense: str
) -> None:
    form, said = parse(text)
    assert said == sense
    assert form.new == pytest.approx(new, rel=1e-15)
    assert form.old == pytest.approx(old, rel=1e-15)
    assert form.constant == pytest.approx(constant, rel=1e-15)


# --- levels and implications --------------------------------------------------------------------

TESTS = [
    ("job == 'clerk'", LevelTest("job", ("clerk",), False)),
    ('job == "clerk"', LevelTest("job", ("clerk",), False)),
    ("job!='clerk'", LevelTest("job", ("clerk",), True)),
    ("job in ['clerk', 'nurse']", LevelTest("job", ("clerk", "nurse"), False)),
    ("job not in ['clerk']", LevelTest("job", ("clerk",), True)),
    ("`job title` in ['a b', \"it's\"]", LevelTest("job title", ("a b", "it's"), False)),
    ("rank != 3", LevelTest("rank", (3.0,), True)),
    ("rank in [-1, 2.5]", LevelTest("rank", (-1.0, 2.5), False)),
    ("owner == True", LevelTest("owner", (True,), False)),
    ("owner != False", LevelTest("owner", (False,), True)),
    ("in in ['in']", LevelTest("in", ("in",), False)),
    ("not not in ['not']", LevelTest("not", ("not",), True)),
    ("job == ''", LevelTest("job", ("",), False)),
    ("job == '<= 3 `x`'", LevelTest("job", ("<= 3 `x`",), False)),
]


@pytest.mark.parametrize(("text", "test"), TESTS, ids=[text for text, _ in TESTS])
def test_tests_of_levels_are_read(text: str, test: LevelTest) -> None:
    assert parse(text) == test


def test_a_number_after_two_equals_signs_is_left_to_whoever_knows_the_feature() -> None:
    assert isinstance(parse("rank == 3"), Comparison)


def test_implications_are_read() -> None:
    student = LevelTest("student", ("yes",), False)
    assert parse("if student == 'yes' then age <= 30") == Promise(student, parse("age <= 30"))
    assert parse("if student == 'yes' then job != 'cook'") == Promise(
        student, LevelTest("job", ("cook",), True)
    )
    assert parse("if `if` in ['then'] then `then` <= original(a)") == Promise(
        LevelTest("if", ("then",), False), parse("`then` <= original(a)")
    )


def test_if_and_then_may_be_features() -> None:
    assert parse("if <= 3") == parse("`if` <= 3")
    assert parse("if + then <= 3") == parse("`if` + `then` <= 3")
    assert parse("if == 'yes'") == LevelTest("if", ("yes",), False)


BAD_TESTS = [
    ("job in 'clerk'", "list of levels"),
    ("job in []", "a level"),
    ("job in ['clerk'", "closing bracket"),
    ("job in ['clerk' 'nurse']", "comma"),
    ("job in ['clerk',]", "a level"),
    ("job in [clerk]", "a level: 'text' in quotes"),
    ("job != clerk", "a level: 'text' in quotes"),
    ("job != ", "the end"),
    ("job == 'clerk", "position 7"),
    ("job <= 'clerk'", "text is for levels"),
    ("'job' <= 3", "`backticks`"),
    ("job == 'clerk' == 'nurse'", "one comparison per constraint"),
    ("job == 'clerk' and age <= 3", "'and'"),
    ("if job == 'clerk'", "'then'"),
    ("if job == 'clerk' age <= 3", "'then'"),
    ("if job == 'clerk' then", "the end"),
    ("if job == 'clerk' then if age == 'x' then b <= 2", "backticks"),
    ("a <= 3 then b <= 2", "'then'"),
    ("job not ['clerk']", "one of <= >= =="),
    ("2 * job != 3", "one of <= >= =="),
]


@pytest.mark.parametrize(("text", "words"), BAD_TESTS, ids=[text for text, _ in BAD_TESTS])
def test_bad_tests_of_levels_say_where_and_what(text: str, words: str) -> None:
    with pytest.raises(clvq.ConstraintSyntaxError) as caught:
        parse(text)
    assert words in str(caught.value)
    assert "position" in str(caught.value)


def test_quotients_of_numbers_are_as_exact_as_python_has_them() -> None:
    """3 * (1 / 10) is not 3 / 10 in floating point."""
    for top in range(1, 40):
        for below in range(1, 40):
            assert parse(f"a <= {top} / {below}").form.constant == -(top / below)


# --- bad strings --------------------------------------------------------------------------------

FACTOR = "expected a number, a feature or original(feature)"
BAD = [
    ("", f"constraint '': the end at position 0; {FACTOR}."),
    ("   ", f"the end at position 0; {FACTOR}."),
    ("a", "no comparison at position 1; expected one of <= >= ==."),
    ("a + b", "no comparison at position 5; expected one of <= >= ==."),
    ("a <=", f"the end at position 4; {FACTOR}."),
    ("<= a", f"'<=' at position 0; {FACTOR}."),
    ("a < b", "'<' at position 2; expected <= (a closest point needs its boundary)."),
    ("a > b", "'>' at position 2; expected >= (a closest point needs its boundary)."),
    ("a = b", "'=' at position 2; expected ==."),
    ("a != b", "'b' at position 5; expected a level: 'text' in quotes"),
    (
        "a <= b <= c",
        "constraint 'a <= b <= c': a second comparison at position 7; expected one comparison per "
        "constraint. Write two strings.",
    ),
    ("1 <= a <= 2", "a second comparison at position 7"),
    (
        "1st floor <= 3",
        "'1' at position 0; expected numbers, features, + - * / ( ) and one of <= >= ==.",
    ),
    (
        "first floor <= 3",
        "'floor' at position 6; expected one of <= >= ==. Put a feature name with spaces or signs "
        "in `backticks`.",
    ),
    ("a <= b c", "'c' at position 7; expected an operator (+ - * /) or the end."),
    ("a <= 2 b", "'b' at position 7; expected an operator (+ - * /) or the end."),
    ("2a <= 3", "'2' at position 0; expected numbers, features"),
    ("a <= 1.2.3", "'1' at position 5; expected numbers, features"),
    ("a <= 1e", "'1' at position 5; expected numbers, features"),
    ("a <= 0x10", "'0' at position 5; expected numbers, features"),
    ("a <= 1_000", "'1' at position 5; expected numbers, features"),
    ("a <= 1,000", "',' at position 6; expected an operator"),
    ("a * b <= 3", "a product of two features at position 2; expected a linear expression."),
    ("a * a <= 3", "a product of two features at position 2; expected a linear expression."),
    ("a * original(b) <= 3", "a product of two features at position 2"),
    ("(a + 1) * (b + 1) <= 3", "a product of two features at position 8"),
    ("1 / a <= 3", "a division by a feature at position 2; expected a linear expression."),
    ("1 / original(a) <= b", "a division by a feature at position 2"),
    ("a / 0 <= 3", "a division by zero at position 2; expected a number other than 0 below."),
    ("a / (1 - 1) <= 3", "a division by zero at position 2"),
    ("a ** 2 <= 3", f"'*' at position 3; {FACTOR}."),
    ("a ^ 2 <= 3", "'^' at position 2; expected numbers, features"),
    ("a % 2 <= 3", "'%' at position 2; expected numbers, features"),
    ("(a <= 3", "'<=' at position 3; expected a closing parenthesis."),
    ("(a", "the end at position 2; expected a closing parenthesis."),
    ("a) <= 3", "')' at position 1; expected one of <= >= =="),
    ("a <= 3)", "')' at position 6; expected an operator (+ - * /) or the end."),
    ("() <= 3", f"')' at position 1; {FACTOR}."),
    ("original() <= 3", "')' at position 9; expected the name of a feature inside original(...)."),
    ("original(3) <= a", "'3' at position 9; expected the name of a feature inside original(...)."),
    ("original(a + b) <= c", "'+' at position 11; expected a closing parenthesis."),
    ("original(", "the end at position 9; expected the name of a feature inside original(...)."),
    ("original(a", "the end at position 10; expected a closing parenthesis."),
    ("original `(` a ) <= b", "'(' at position 10; expected one of <= >= =="),
    ("sum(a) <= 3", "'(' at position 3; expected one of <= >= =="),
    ("`a <= 3", "'`' at position 0; expected numbers, features"),
    ("a` <= 3", "'`' at position 1; expected numbers, features"),
    ("a + * b <= 3", f"'*' at position 4; {FACTOR}."),
    ("a & b <= 3", "'&' at position 2; expected numbers, features"),
    ("a <= 3;", "';' at position 6; expected numbers, features"),
    ("a <= 3 # note", "'#' at position 7; expected numbers, features"),
    ("a[0] <= 3", "'[' at position 1; expected one of <= >= =="),
    ('"a" <= 3', "'a' at position 0; expected a number, a feature"),
    ("a <= 1e999", "'1e999' at position 5; expected a finite number."),
    ("a * 1e999 <= 1", "'1e999' at position 4; expected a finite number."),
    ("1e300 * 1e300 * a <= 1", "numbers that grow beyond floating point at position 14"),
    ("a / 1e-200 / 1e-200 <= 1", "numbers that grow beyond floating point at position 11"),
    ("1e308 + 1e308 + a <= 1", "numbers that grow beyond floating point"),
    ("a - 1.7e308 <= 1.7e308", "numbers that grow beyond floating point"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[row[0] or "empty" for row in BAD])
def test_bad_string_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(clvq.ConstraintSyntaxError) as raised:
        parse(text)
    assert message in str(raised.value)
    assert str(raised.value).startswith(f"constraint {text!r}: ")
    assert str(raised.value).endswith(".")


@pytest.mark.machine
@pytest.mark.parametrize(
    "text",
    ["(" * 40_000 + "a" + ")" * 40_000 + " <= 1", "-" * 90_000 + "a <= 1", "(-" * 50_000],
    ids=["parentheses", "signs", "both"],
)
def test_endless_nesting_is_refused_in_words(text: str) -> None:
    with pytest.raises(clvq.ConstraintSyntaxError) as raised:
        parse(text)
    assert "expected at most 100 parentheses and signs within each other" in str(raised.value)


def test_long_sums_are_no_nesting() -> None:
    form, _ = parse(" + ".join(f"f{k}" for k in range(5000)) + " <= 1")
    assert len(form.new) == 5000
    assert parse("(" * 90 + "a" + ")" * 90 + " <= 1").form.new == {"a": 1.0}


# --- nothing is executed ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os') <= 1",
        '__import__("os").getpid() <= 1',
        "(lambda: 0)() <= a",
        "exec('1') <= a",
        "a.__class__() <= 1",
        "[a for a in ()] <= 1",
        "a if 1 else 0 <= 1",
        "{a} <= 1",
        "f'{a}' <= 1",
        "a := 1 <= 1",
        "print(a) <= 1",
    ],
)
def test_code_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(clvq.ConstraintSyntaxError):
        parse(text)
    assert capsys.readouterr().out == ""


def test_attributes_are_names_and_nothing_is_looked_up() -> None:
    model = clvq.PrototypeModel([[0.0], [1.0]], [0, 1], feature_names=["a"])
    with pytest.raises(clvq.UnknownFeatureError, match=r"feature 'a\.__class__' does not exist"):
        clvq.Explainer(model, constraints=["a.__class__ <= 1"])


# --- any linear expression ----------------------------------------------------------------------

NAMES = ["a", "b2", "long_name", "1st floor", "x.y", "<= &"]
VALUES = dict(zip(NAMES, map(Fraction, ["3", "-1/2", "7/4", "5", "-11/8", "2"]), strict=True))
ORIGINALS = dict(zip(NAMES, map(Fraction, ["1", "5/2", "-3", "1/4", "9", "-7/2"]), strict=True))


class Written:
    """An expression as text, and what it is worth at `VALUES` and `ORIGINALS`, exactly."""

    def __init__(self, text: str, value: Fraction, is_number: bool) -> None:
        self.text, self.value, self.is_number = text, value, is_number

    def __repr__(self) -> str:
        return self.text


def shown(name: str) -> str:
    return f"`{name}`" if " " in name else name


# Eighths are exact, as numbers and in decimal notation.
eighths = st.integers(0, 64).map(lambda n: Written(str(n / 8), Fraction(n, 8), True))
scientific = st.integers(0, 99).map(lambda n: Written(f"{n}E+1", Fraction(10 * n), True))
features = st.sampled_from(NAMES).map(lambda name: Written(shown(name), VALUES[name], False))
originals = st.sampled_from(NAMES).map(
    lambda name: Written(f"original({shown(name)})", ORIGINALS[name], False)
)


def add(left: Written, sign: str, right: Written) -> Written:
    value = left.value + right.value if sign == "+" else left.value - right.value
    return Written(f"({left} {sign} ({right}))", value, left.is_number and right.is_number)


def multiply(left: Written, right: Written) -> Written:
    numeric = left.is_number and right.is_number
    return Written(f"({left}) * ({right})", left.value * right.value, numeric)


def divide(top: Written, below: int) -> Written:
    return Written(f"({top}) / {below}", top.value / below, top.is_number)


def negate(inner: Written) -> Written:
    return Written(f"-({inner})", -inner.value, inner.is_number)


leaves = eighths | scientific | features | originals


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> Written:
    kind = draw(
        st.sampled_from(["leaf", "sum", "product", "quotient", "sign"] if depth else ["leaf"])
    )
    if kind == "leaf":
        return draw(leaves)
    inner = draw(expressions(depth - 1))
    if kind == "quotient":
        return divide(inner, draw(st.sampled_from([2, 4, -8])))
    if kind == "sign":
        return negate(inner)
    other = draw(expressions(depth - 1))
    if kind == "sum":
        return add(inner, draw(st.sampled_from("+-")), other)
    if not inner.is_number and not other.is_number:
        other = draw(eighths)
    return multiply(inner, other) if draw(st.booleans()) else multiply(other, inner)


def worth(form: LinearForm) -> Fraction:
    total = Fraction(form.constant)
    total += sum(Fraction(c) * VALUES[name] for name, c in form.new.items())
    return total + sum(Fraction(c) * ORIGINALS[name] for name, c in form.old.items())


@bounded
@given(expressions(), st.sampled_from(["<=", ">=", "=="]), expressions())
def test_linear_expressions_are_worth_what_they_say(
    left: Written, sense: str, right: Written
) -> None:
    form, said = parse(f"{left} {sense} {right}")
    assert said == sense
    expected = left.value - right.value
    assert float(worth(form)) == pytest.approx(float(expected), rel=1e-12, abs=1e-9)


@bounded
@given(
    st.dictionaries(st.sampled_from(NAMES), st.floats(-1e6, 1e6), min_size=1),
    st.dictionaries(st.sampled_from(NAMES), st.floats(-1e6, 1e6)),
    st.floats(-1e6, 1e6),
)
def test_coefficients_come_back_to_the_last_digit(
    new: dict[str, float], old: dict[str, float], constant: float
) -> None:
    terms = [f"{value!r} * {shown(name)}" for name, value in new.items()]
    terms += [f"original({shown(name)}) * {value!r}" for name, value in old.items()]
    form, _ = parse(f"{' + '.join(terms)} <= {constant!r}")
    assert form.new == new
    assert form.old == old
    assert form.constant == -constant


# --- any text -----------------------------------------------------------------------------------

pieces = st.sampled_from(
    ["a", "original", "original(", "(", ")", "<=", ">=", "==", "<", "=", "+", "-", "*", "/", "`"]
    + ["1", "0", "2.5", "1e999", "1e308", "1e-320", ".", "e", " ", "\n", "\x00", "`b c`", "`(`"]
)


@bounded
@given(st.text() | st.lists(pieces, max_size=40).map("".join))
@example("\ud800 <= 1")
@example("٣ <= ²")
@example("a <= 5e-324 / 5e-324 * 1e308 * 1e308")
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        form, sense = parse(text)
    except clvq.ConstraintSyntaxError:
        return
    assert sense in ("<=", ">=", "==")
    numbers = [form.constant, *form.new.values(), *form.old.values()]
    assert all(isinstance(number, float) for number in numbers)
    assert all(abs(number) < float("inf") for number in numbers)


# --- from strangers -------------------------------------------------------------------------------


def seconds(text: str) -> float:
    """The least of three times that it takes to read a constraint, or to refuse it."""
    took = []
    for _ in range(3):
        start = process_time()
        with contextlib.suppress(clvq.ConstraintSyntaxError):
            parse(text)
        took.append(process_time() - start)
    return min(took)


LONG = {
    "digits before a letter": lambda n: "1" * n + ".x <= a",
    "digits behind a point": lambda n: "." + "1" * n + "x <= a",
    "digits of an exponent": lambda n: "1e" + "1" * n + "x <= a",
    "one digit after another": lambda n: "1 " * (n // 2) + "<= a",
    "points": lambda n: "." * n,
    "spaces": lambda n: " " * n + "?",
    "a name": lambda n: "a" * n + " <= 1",
    "an open quote": lambda n: "a == '" + "x" * n,
    "quotes": lambda n: "`" * n,
    "a sum of names": lambda n: " + ".join(f"a{k}" for k in range(n // 8)) + " <= 1",
    "a sum times many numbers": lambda n: (
        "(" + "+".join(f"a{k}" for k in range(n // 16)) + ")" + "*1.5/1.5" * (n // 16) + " <= 1"
    ),
    "a sum times large numbers": lambda n: (
        "(" + "+".join(f"a{k}" for k in range(n // 16)) + ")" + "*9e99/9e99" * (n // 20) + " <= 1"
    ),
    "a sum in parentheses": lambda n: (
        "(-" * 45 + "+".join(f"a{k}" for k in range(n // 8)) + ")" * 45 + " <= 1"
    ),
    "levels": lambda n: "a in [" + ",".join(f"'{k}'" for k in range(n // 8)) + "]",
}


@pytest.mark.machine
@pytest.mark.parametrize("make", LONG.values(), ids=LONG.keys())
def test_time_grows_with_the_length_and_not_with_its_square(make: Callable[[int], str]) -> None:
    short, long = seconds(make(2_000)), seconds(make(40_000))
    # Twenty times as long: twenty times the time, with room for noise; the square were 400 times.
    assert long < max(100 * short, 0.25)


def test_long_strings_are_refused_and_quoted_in_part() -> None:
    with pytest.raises(clvq.ConstraintSyntaxError) as raised:
        parse("a <= " + "1" * 10**6)
    assert "(1,000,005 characters) is too long; expected at most 100,000" in str(raised.value)
    assert len(str(raised.value)) < 600
    for text in ("a" * 50_000 + " ? 1", "`" + "b" * 50_000 + "` + ", "a == '" + "c" * 50_000):
        with pytest.raises(clvq.ConstraintSyntaxError) as raised:
            parse(text)
        assert len(str(raised.value)) < 800


@pytest.mark.parametrize("given", [b"a <= b", bytearray(b"a <= b"), 3, None, ["a <= b"]])
def test_what_is_no_string_is_refused_in_words(given: Any) -> None:
    with pytest.raises(clvq.ConstraintSyntaxError, match="expected a string such as 'a <= b'"):
        parse(given)
    with pytest.raises(clvq.InvalidInputError, match="expected a string such as 'a <= b'"):
        Expression(given)
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 0.0]], ["no", "yes"], feature_names=["a", "b"])
    with pytest.raises(clvq.InvalidInputError, match="constraint"):
        clvq.Explainer(model, constraints=[given])
    if isinstance(given, bytes):
        with pytest.raises(clvq.InvalidInputError, match="a single bytes; expected a list"):
            clvq.Explainer(model, constraints=given)


@pytest.mark.parametrize("seed", range(40))
def test_products_are_those_of_rational_numbers(seed: int) -> None:
    """Numbers of a product are gathered before they are applied: the result is as exact."""
    rng = random.Random(seed)
    text, exact = "a", Fraction(1)
    for _ in range(rng.randrange(1, 12)):
        number = rng.choice([3.0, 0.1, 49.0, 7e-5, 1e150, 1e-150, 2.5e200])
        if rng.random() < 0.5:
            text, exact = f"{text} * {number!r}", exact * Fraction(number)
        else:
            text, exact = f"{text} / {number!r}", exact / Fraction(number)
    if not Fraction(1, 10**290) < exact < 10**290:
        return
    form, _ = parse(f"{text} <= 1")
    assert abs(Fraction(form.new["a"]) - exact) <= exact * 26 * Fraction(1, 2**53)


def test_a_factor_of_zero_takes_no_level_apart() -> None:
    features = clvq.Features([clvq.Feature("job", levels=[1, 2]), "pay"])
    with pytest.raises(clvq.InvalidInputError, match="feature 'job' is categorical"):
        Expression("0 * job == 2").conditions(features)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("SF-Klasse >= 5", "between backticks: `SF-Klasse`."),
        ("pay <= 2 * pay/month", "between backticks: `pay/month`."),
        ("if SF-Klasse > 3 then pay >= 2", "between backticks: `SF-Klasse`."),
        ("net pay <= 3", "Put a feature name with spaces or signs in `backticks`."),
        ("pay <= 50,5", "Write numbers such as 1234.5"),
        ("pay <= 1,000.5", "Write numbers such as 1234.5"),
        ("pay <= `pay/month` + incme", "pay/month, SF-Klasse, net pay."),
    ],
)
def test_advice_about_odd_names_and_numbers(text: str, advice: str) -> None:
    features = clvq.Features(["pay", "pay/month", "SF-Klasse", "net pay"])
    with pytest.raises(clvq.InvalidInputError) as caught:
        Expression(text).conditions(features)
    assert advice in str(caught.value)
    assert str(caught.value).count("backticks") <= 1
    model = clvq.PrototypeModel([[0.0] * 4, [9.0] * 4], ["no", "yes"], feature_names=features.names)
    trifle = clvq.MinChange("pay", 0.5, is_default=True)  # by which the text is looked at first
    with pytest.raises(clvq.InvalidInputError) as again:
        clvq.Explainer(model, constraints=[text, trifle])
    assert str(again.value) == str(caught.value)
