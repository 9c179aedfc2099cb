"""Values that readers do not expect."""

from __future__ import annotations

import math

CANARY = "tools.fuzz.canary"
OUTSIDE = "/tmp/gmil-fuzz-escaped"

INTEGERS = (0, 1, 2, -1, 7, 255, 2**15, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30)
FLOATS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1e308, -1e308, 1e160, 5e-324, -1.0, 1e-300)
HEX_FLOATS = ("nan", "inf", "-inf", "0x1p+1023", "-0x1p+1023", "0x1p-1074", "0x1p+9999999", "", "0x", "1" * 5000)
PATHS = (
    OUTSIDE,
    "/etc/passwd",
    "../../gmil-fuzz-escaped",
    "..",
    "a/../../b",
    "C:\\Windows\\system32\\x",
    "\\\\server\\share",
    "nul\x00byte",
    "x" * 5000,
    "",
    "\u202egnp.exe",
)
CLASSES = (
    "int",
    "eval",
    "exec",
    "__import__",
    "object",
    "type",
    "os.system",
    "posix.system",
    "builtins.exec",
    "subprocess.Popen",
    "sklearn.svm.SVC",
    "SVC",
    "Pipeline",
    "BaseEstimator",
    f"{CANARY}.Canary",
    "GMIL ",
    "gmil",
    "Bags",
    "GmilError",
    "NoSuchClass",
    "",
    "x" * 100_000,
)
MODULES = ("os", "posix", "subprocess", "builtins", CANARY, "sklearn.svm", "numpy", "ctypes", "no.such.module", "")
PICKLES = (
    f"c{CANARY}\ntrip\n(tR.".encode(),
    b"cposix\nsystem\n(S'true'\ntR.",
    b"cbuiltins\neval\n(S'1'\ntR.",
)
TEXTS = (
    "",
    " ",
    "nan",
    "1e999",
    "-",
    "'",
    '"',
    "{",
    "\x00",
    "\ufeff",
    "\U0001f4a5",
    "a" * 100_000,
    "rbf",
    "linear",
    "0x1p3",
)
