"""What a check of data returns."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from gmil.errors import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable

Level = Literal["ok", "note", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of the data, and its outcome.

    Attributes
    ----------
    name : str
        Of the check; the same for all data.
    level : {"ok", "note", "warning"}
        Whether it is as it should be, worth knowing, or a reason to doubt results on these data.
    value : float or None
        The figure behind it, where there is one.
    text : str
        What was found, in sentences.
    with_it, without_it : float or None
        Where results hang on it, the cross-validated AUC of a small model with the data as they are, and with it
        mended.
    fix : str
        How to mend it.
    """

    name: str
    level: Level
    value: float | None
    text: str
    with_it: float | None = None
    without_it: float | None = None
    fix: str = ""

    def told(self) -> str:
        """Return what was found, what hangs on it, and how to mend it."""
        hangs = "" if self.without_it is None else f" AUC {self.with_it:.3f} with it, {self.without_it:.3f} without."
        return f"{self.text}{hangs}{f' {self.fix}' if self.fix else ''}"


@dataclass(frozen=True, slots=True)
class DataCheck:
    """The outcome of `check_data`: one `Finding` for every check.

    Attributes
    ----------
    verdict : str
        What the data allow to be learnt, in words.
    findings : list of Finding
        Of all checks, in a fixed order.

    Examples
    --------
    >>> import gmil
    >>> found = gmil.check_data(*gmil.make_bags(60, random_state=0, return_X_y=True))
    >>> found.verdict
    'better than chance and than bag size'
    >>> found["majority class"].value
    0.5
    """

    verdict: str
    findings: list[Finding]

    def __getitem__(self, name: str) -> Finding:
        """Return the finding of that name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(name)

    def warnings(self) -> str:
        """Return which findings are warnings, in words."""
        return warnings_among((finding.name, finding.level) for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {"verdict": self.verdict, "findings": [asdict(finding) for finding in self.findings]}

    def __str__(self) -> str:
        marks = {"ok": " ", "note": "*", "warning": "!"}
        lines = [f"{marks[finding.level]} {finding.name}: {finding.told()}" for finding in self.findings]
        return "\n".join([f"Verdict: {self.verdict}.", *lines])


def untested(name: str, obstacle: str, level: Level) -> Finding:
    """Return that a check could not be made."""
    return Finding(name, level, None, f"Not tested: {obstacle}.")


def infinite(findings: list[Finding]) -> str | None:
    """Return that no method can learn from these values, or None."""
    found = next((finding for finding in findings if finding.name == "infinite values"), None)
    return None if found is None else f"{count_of(int(found.value or 0), 'value is', 'values are')} infinite"


def not_assessable(obstacle: str, findings: list[Finding], name: str) -> DataCheck:
    """Return that nothing could be learnt; ``name`` is the check that would have told."""
    return DataCheck(f"not assessable: {obstacle}", [*findings, untested(name, obstacle, "warning")])


def warnings_among(findings: Iterable[tuple[str, str]]) -> str:
    """Return the names of the findings, of (name, level), that are warnings, in words.

    >>> warnings_among([("bag size", "warning"), ("majority class", "ok"), ("identical bags", "warning")])
    '2 warnings (bag size, identical bags)'
    """
    names = [name for name, level in findings if level == "warning"]
    if not names:
        return "no warning"
    return f"{count_of(len(names), 'warning')} ({', '.join(names)})"
