"""The native module of the laboratory, which an installation may lack."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strobe._laboratory import Conditions as Conditions
    from strobe._laboratory import Problem as Problem


def laboratory() -> ModuleType:
    try:
        return importlib.import_module("strobe._laboratory")
    except ModuleNotFoundError:
        raise NotImplementedError(
            "this installation of strobe only computes: to compare, install fmt, CLI11,"
            " nlohmann_json and Chart.js 3 (on Debian libfmt-dev libcli11-dev nlohmann-json3-dev"
            " libjs-chart.js), then strobe again"
        ) from None


def __getattr__(name: str) -> Any:
    if name in ("Conditions", "Problem"):
        return getattr(laboratory(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
