r"""Read constraints that people write: ``"second_floor <= 1.2 * original(first_floor)"``.

The grammar, over features of the counterfactual and ``original(...)`` values of the input::

    constraint := ["if" condition "then"] (comparison | test)
                | "if" feature "changes" "then" "by" "at" "least" number
    condition  := comparison | test | sum ("<" | ">") sum
    comparison := sum ("<=" | ">=" | "==") sum
    test       := feature ("==" | "!=") level | feature ["not"] "in" "[" level ("," level)* "]"
    level      := 'text' | "text" | number | "True" | "False"
    sum        := ["+" | "-"] product (("+" | "-") product)*
    product    := factor (("*" | "/") factor)*
    factor     := number | date | feature | "original" "(" feature ")" | "(" sum ")"
                | ("+" | "-") factor
    date       := '2024-05-31', "2024-05-31" or 2024-05-31
    feature    := a name of letters, digits, "_" and ".", or any name in `backticks`

Values are linear forms, so a product needs a number on one side and a division a number
below. ``f == 2`` is read as a comparison; whoever knows that f has levels takes it as a test, as
whoever knows that f is a number takes a test as a comparison. A date is a number of days; to
subtract numbers that look like one, put spaces around the signs.
Nothing is ever evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import isnan, nan
from typing import NamedTuple, NoReturn

from counterlvq.errors import ConstraintSyntaxError
from counterlvq.numeric.arrays import told
from counterlvq.problem.linear_forms import Factor, LinearForm, Sum
from counterlvq.tables.dates import days_of

__all__ = [
    "Comparison",
    "Least",
    "LevelTest",
    "LinearForm",
    "Promise",
    "names_in",
    "parse",
    "parse_test",
    "quoted",
    "respoken",
]

# Quantifiers take all they can and give nothing back (++): a number that is followed by a letter is
# none at the first look, rather than after as many as it has digits.
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<date>\d{4}-\d{2}-\d{2}(?![\w.-]))
    | (?P<number>(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?\d++)?+(?![\w.]))
    | (?P<name>[^\W\d][\w.]*)
    | `(?P<quoted>[^`]*)`
    | '(?P<single>[^']*)'
    | "(?P<double>[^"]*)"
    | (?P<symbol><=|>=|==|!=|[-+*/()<>=,\[\]])
    )""",
    re.VERBOSE,
)
_QUOTED_PART = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SENSES = ("<=", ">=", "==")
# Behind "if" only: what holds there is not looked for, so that nothing needs its boundary.
_STRICT = ("<", ">")
_LEAST_WORDS = ("changes", "then", "by", "at", "least")
_BOOLEANS = {"True": True, "False": False}
# Longer than any list of levels that people write; the time to read is proportional to it.
_LENGTH = 100_000
_QUOTED = 300
# Parentheses and signs within each other: far more than anyone writes, far less than the stack.
_DEPTH = 100


class Comparison(NamedTuple):
    """``form sense 0``: what a constraint string says once all is on the left."""

    form: LinearForm
    sense: str


class LevelTest(NamedTuple):
    """Whether a feature has one of some levels, or none of them."""

    feature: str
    levels: tuple[str | float | bool, ...]
    negated: bool


class Least(NamedTuple):
    """Where a feature changes, it changes by at least so much."""

    feature: str
    by: float


class Promise(NamedTuple):
    """Where the first holds, the second has to."""

    when: LevelTest | Comparison
    then: LevelTest | Comparison


class _Token(NamedTuple):
    kind: str  # number, name, quoted, text, symbol or end
    text: str
    start: int


def parse(text: str) -> Comparison | LevelTest | Promise | Least:
    """Read a constraint string.

    Examples
    --------
    >>> form, sense = parse("2 * a <= `b c` + 3")
    >>> form.new, form.constant, sense
    ({'a': 2.0, 'b c': -1.0}, -3.0, '<=')
    >>> parse("job in ['clerk', 'nurse']")
    LevelTest(feature='job', levels=('clerk', 'nurse'), negated=False)
    """
    return _Parser(text).constraint()


def parse_test(text: str) -> Comparison | LevelTest:
    """Read what may stand behind "if".

    Examples
    --------
    >>> parse_test("amount > 5000").sense
    '>'
    """
    return _Parser(text).test()


def quoted(text: str) -> str:
    """Quote a constraint in an error; the beginning of a long one.

    Examples
    --------
    >>> quoted("a <= b")
    "'a <= b'"
    """
    if len(text) <= _QUOTED:
        return repr(text)
    return f"{text[:_QUOTED]!r}... ({len(text):,} characters)"


def names_in(text: str) -> list[str]:
    """List the words of a text that may be names of features.

    Examples
    --------
    >>> names_in("if a > 2 then `b c` <= 1")
    ['if', 'a', 'then', 'b c']
    """
    found = (token["name"] or token["quoted"] for token in _TOKEN.finditer(text))
    return [name for name in found if name]


def is_name(text: str) -> bool:
    """Whether a name needs no backticks.

    Examples
    --------
    >>> is_name("pay"), is_name("pay/month")
    (True, False)
    """
    token = _TOKEN.fullmatch(text)
    return token is not None and token["name"] == text


def without_quoted(text: str) -> str:
    """Leave out what stands between backticks or quotes.

    Examples
    --------
    >>> without_quoted("`old pay` <= pay")
    ' <= pay'
    """
    return _QUOTED_PART.sub("", text)


def respoken(text: str, label: Callable[[str], str]) -> str:
    """Write labels in the place of names; `label` gives "" for names that have none.

    Examples
    --------
    >>> respoken("inc <= 2 * `old inc`", {"inc": "your income", "old inc": ""}.get)
    'your income <= 2 * `old inc`'
    """

    def spoken(token: re.Match[str]) -> str:
        name = token["name"] or token["quoted"]
        words = label(name) if name else ""
        if not words:
            return token[0]
        return token[0][: len(token[0]) - len(token[0].lstrip())] + words

    return _TOKEN.sub(spoken, text)


class _Parser:
    """Recursive descent over the tokens of one constraint."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ConstraintSyntaxError(
                f"a constraint is {type(text).__name__}; expected a string such as 'a <= b'."
                + (" Decode it first." if isinstance(text, bytes | bytearray) else "")
            )
        if len(text) > _LENGTH:
            raise ConstraintSyntaxError(
                f"constraint {quoted(text)} is too long; expected at most {_LENGTH:,} characters. "
                f"Write several constraints, or use Linear and OneOf."
            )
        self._text = text
        self._tokens = list(self._tokenise())
        self._next = 0
        self._depth = 0

    def constraint(self) -> Comparison | LevelTest | Promise | Least:
        found: Comparison | LevelTest | Promise | Least
        if self._begins_with_if():
            self._take()
            found = self._least() or self._promise()
        else:
            found = self._condition()
        self._expect_end()
        return found

    def test(self) -> Comparison | LevelTest:
        found = self._test() or self._comparison(_STRICT)
        self._expect_end()
        return found

    def _promise(self) -> Promise:
        when = self._test() or self._comparison(_STRICT)
        word = self._take()
        if (word.kind, word.text) != ("name", "then"):
            shown = "the end" if word.kind == "end" else told(word.text)
            self._refuse(word, shown, "'then' and what has to hold")
        return Promise(when, self._condition())

    def _least(self) -> Least | None:
        """Read a least change; None, and nothing read, if there is none here."""
        feature, word = self._tokens[self._next], self._tokens[self._next + 1]
        if feature.kind not in ("name", "quoted") or (word.kind, word.text) != ("name", "changes"):
            return None
        self._take()
        for wanted in _LEAST_WORDS:
            word = self._take()
            if (word.kind, word.text) != ("name", wanted):
                shown = "the end" if word.kind == "end" else told(word.text)
                self._refuse(word, shown, f"{' '.join(_LEAST_WORDS)!r} and a number")
        token = self._take()
        if token.kind != "number":
            shown = "the end" if token.kind == "end" else told(token.text)
            self._refuse(token, shown, "a number")
        return Least(feature.text, self._number(token).constant)

    def _begins_with_if(self) -> bool:
        """Whether "if" is the word here, rather than a feature of that name."""
        here, then = self._tokens[0], self._tokens[min(1, len(self._tokens) - 1)]
        begins = then.kind in ("name", "quoted", "number")
        return (here.kind, here.text) == ("name", "if") and begins

    def _condition(self) -> Comparison | LevelTest:
        return self._test() or self._comparison()

    def _test(self) -> LevelTest | None:
        """Read a comparison with levels; None, and nothing read, if there is none here."""
        start = self._next
        feature, sense = self._take(), self._take()
        if feature.kind in ("name", "quoted"):
            if sense.kind == "symbol" and sense.text in ("==", "!="):
                level = self._peek()
                if sense.text == "!=" or level.kind == "text" or level.text in _BOOLEANS:
                    return LevelTest(feature.text, (self._level(),), sense.text == "!=")
            elif sense.kind == "name" and sense.text == "in":
                return LevelTest(feature.text, self._levels(), False)
            elif sense.kind == "name" and sense.text == "not":
                after = self._take()
                if (after.kind, after.text) == ("name", "in"):
                    return LevelTest(feature.text, self._levels(), True)
        self._next = start
        return None

    def _level(self) -> str | float | bool:
        token = self._take()
        if token.kind == "text":
            return token.text
        if token.kind == "name" and token.text in _BOOLEANS:
            return _BOOLEANS[token.text]
        sign = 1.0
        if token.kind == "symbol" and token.text == "-":
            sign, token = -1.0, self._take()
        if token.kind == "number":
            return sign * self._number(token).constant
        shown = "the end" if token.kind == "end" else told(token.text)
        return self._refuse(token, shown, "a level: 'text' in quotes, a number, True or False")

    def _levels(self) -> tuple[str | float | bool, ...]:
        token = self._take()
        if (token.kind, token.text) != ("symbol", "["):
            shown = "the end" if token.kind == "end" else told(token.text)
            self._refuse(token, shown, "a list of levels such as ['clerk', 'nurse']")
        found = [self._level()]
        while self._sees(","):
            self._take()
            found.append(self._level())
        token = self._take()
        if (token.kind, token.text) != ("symbol", "]"):
            shown = "the end" if token.kind == "end" else told(token.text)
            self._refuse(token, shown, "a comma or the closing bracket of the list")
        return tuple(found)

    def _comparison(self, more: tuple[str, ...] = ()) -> Comparison:
        left = self._sum()
        sense = self._take()
        if sense.text not in _SENSES + more or sense.kind != "symbol":
            self._refuse_sense(sense)
        total = Sum()
        total.add(left)
        total.add(self._sum(), -1.0)
        return Comparison(self._finite(total.form(), sense), sense.text)

    def _expect_end(self) -> None:
        end = self._take()
        if end.text in _SENSES and end.kind == "symbol":
            self._refuse(
                end,
                "a second comparison",
                "one comparison per constraint. Write two strings",
            )
        if end.kind != "end":
            self._refuse(end, told(end.text), "an operator (+ - * /) or the end")

    def _sum(self) -> LinearForm:
        start, first = self._peek(), self._product()
        if not self._sees("+", "-"):
            return first
        total = Sum()
        total.add(first)
        while self._sees("+", "-"):
            sign = 1.0 if self._take().text == "+" else -1.0
            total.add(self._product(), sign)
        return self._finite(total.form(), start)

    def _product(self) -> LinearForm:
        form, factor, operator = self._factor(), Factor(), None
        while self._sees("*", "/"):
            operator = self._take()
            form = self._combined(form, operator, self._factor(), factor)
        return form if operator is None else self._finite(form.times(factor), operator)

    def _combined(
        self, left: LinearForm, operator: _Token, right: LinearForm, factor: Factor
    ) -> LinearForm:
        """Put the number among the two into the factor, and return the other one."""
        if operator.text == "*":
            if not right.is_number:
                if not left.is_number:
                    self._refuse(operator, "a product of two features", "a linear expression")
                left, right = right, left
            factor.multiply(right.constant)
            return left
        if not right.is_number:
            self._refuse(operator, "a division by a feature", "a linear expression")
        if right.constant == 0:
            self._refuse(operator, "a division by zero", "a number other than 0 below")
        factor.divide(right.constant)
        return left

    def _factor(self) -> LinearForm:
        self._depth += 1
        if self._depth > _DEPTH:
            self._refuse(
                self._peek(),
                "deep nesting",
                f"at most {_DEPTH} parentheses and signs within each other",
            )
        form = self._innermost()
        self._depth -= 1
        return form

    def _innermost(self) -> LinearForm:
        token = self._take()
        if token.kind == "number":
            return self._number(token)
        if token.kind == "name" and token.text == "original" and self._sees("("):
            return self._original()
        if token.kind in ("name", "quoted"):
            return LinearForm(new={token.text: 1.0})
        if token.text in ("+", "-"):
            form = self._factor()
            return form if token.text == "+" else form.negated()
        if token.text == "(":
            inner = self._sum()
            self._expect_closing()
            return inner
        return self._date(token)

    def _date(self, token: _Token) -> LinearForm:
        """Read a date as a number of days; refuse anything else."""
        days = days_of(token.text) if token.kind == "text" else nan
        if not isnan(days):
            return LinearForm(constant=days, has_date=True)
        expected = "a number, a feature or original(feature)"
        if _DATE.fullmatch(token.text):
            expected = "a date that exists, such as 2024-05-31"
        elif token.kind == "text":
            expected += ". Put the name of a feature in `backticks`; text is for levels"
        shown = "the end" if token.kind == "end" else told(token.text)
        return self._refuse(token, shown, expected)

    def _number(self, token: _Token) -> LinearForm:
        number = LinearForm(constant=float(token.text))
        if not number.is_finite:
            self._refuse(token, told(token.text), "a finite number")
        return number

    def _original(self) -> LinearForm:
        self._take()
        token = self._take()
        if token.kind not in ("name", "quoted"):
            shown = "the end" if token.kind == "end" else told(token.text)
            self._refuse(token, shown, "the name of a feature inside original(...)")
        self._expect_closing()
        return LinearForm(old={token.text: 1.0})

    def _finite(self, form: LinearForm, token: _Token) -> LinearForm:
        if not form.is_finite:
            self._refuse(token, "numbers that grow beyond floating point", "smaller ones")
        return form

    def _expect_closing(self) -> None:
        token = self._take()
        if token.text != ")" or token.kind != "symbol":
            shown = "the end" if token.kind == "end" else told(token.text)
            self._refuse(token, shown, "a closing parenthesis")

    def _tokenise(self) -> Iterator[_Token]:
        position = 0
        stripped = self._text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None or match.lastgroup is None:
                start = position + len(stripped[position:]) - len(stripped[position:].lstrip())
                bad = _Token("symbol", stripped[start], start)
                self._refuse(
                    bad, told(bad.text), "numbers, features, + - * / ( ) and one of <= >= =="
                )
            group = match.lastgroup
            is_quoted = group in ("single", "double")
            kind = "text" if is_quoted or group == "date" else group
            yield _Token(kind, match.group(group), match.start(group) - is_quoted)
            position = match.end()
        yield _Token("end", "", len(stripped))

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _sees(self, *symbols: str) -> bool:
        token = self._peek()
        return token.kind == "symbol" and token.text in symbols

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _refuse_sense(self, token: _Token) -> NoReturn:
        advice = {
            "<": "<= (a closest point needs its boundary)",
            ">": ">= (a closest point needs its boundary)",
            "=": "==",
        }
        if token.kind == "symbol" and token.text in advice:
            self._refuse(token, told(token.text), advice[token.text])
        shown = "no comparison" if token.kind == "end" else told(token.text)
        hint = ". Put a feature name with spaces or signs in `backticks`"
        self._refuse(token, shown, "one of <= >= ==" + (hint if token.kind != "end" else ""))

    def _refuse(self, token: _Token, came: str, expected: str) -> NoReturn:
        raise ConstraintSyntaxError(
            f"constraint {quoted(self._text)}: {came} at position {token.start}; expected "
            f"{expected}."
        )
