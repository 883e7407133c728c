"""Several implementations on the same problems: ours and those of other libraries."""

from __future__ import annotations

import contextlib
import json as json_module
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from strobe._laboratory import Problem

Problems = Union[str, "Problem", Iterable[Union[str, "Problem"]]]

# Options of the program that are called otherwise here, for errors that name them.
_NAMES = {"problem": "problems", "impl": "implementations", "pass": "passes"}


def compare(
    problems: Problems | None = None,
    *,
    implementations: str | Sequence[str] | None = None,
    passes: str | None = None,
    base: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    quick: bool = False,
    repeats: int | None = None,
    target: float | None = None,
    budget: float | None = None,
    json: str | os.PathLike[str] | None = None,
    force: bool = False,
    verbose: bool = False,
    **settings: Any,
) -> list[dict[str, Any]]:
    """Times implementations in turns on the same operands and holds each against the oracle, as
    `strobe compare` does, with the peers of `strobe.peers` among them.

    Args:
        problems: By the text form, "b2 s4096 h16 d128 bf16 causal"; one or several. A
            representative set if there are neither problems nor settings.
        implementations: By name, "flash", "torch:math", "cuda:flash_attn:2"; if None, those of ours
            that are worth it and every peer.
        passes: "forward", "backward" or "both"; what each problem says if None.
        base: The implementation that printed speed-ups are told against.
        device: "cpu", "cuda" or "cuda:1"; the CPU if None.
        threads: On the CPU, for ours and for the peers.
        quick: Few samples, done in seconds; there is no budget to give then.
        repeats: Exactly so many samples.
        target: Sample until the median is known within so many percent,
        budget: or until so many seconds are spent.
        json: Also write the records to this file, for `strobe report`.
        force: Let it be replaced.
        verbose: Print the tables and the progress that the program prints.
        settings: One problem by its sizes, as the program's options name them: seqlen=1024,
            nheads=8, headdim=64, dtype="fp32", causal=True, preset="llm-4k", ...

    Returns:
        The records, one for each problem and implementation. Those with "status" "ok" have the
        times as "ms" and what the oracle says as "error"; the others have a "reason".

    Raises:
        TypeError, ValueError: An argument is wrong; the message names it.
        RuntimeError: The device is not there.
        NotImplementedError: The package was built without this.
    """
    laboratory = _laboratory_with_peers()
    arguments = [
        *_problem_arguments(problems),
        *_option("impl", _joined("implementations", implementations)),
        *_option("pass", passes),
        *_option("base", base),
        *_option("device", device),
        *_option("threads", threads),
        *_option("quick", quick),
        *_option("repeats", repeats),
        *_option("target", target),
        *_option("budget", budget),
        *_setting_arguments(settings, [*laboratory.setting_names(), "preset"]),
    ]
    with tempfile.TemporaryDirectory() as folder, _settings_kept():
        path = os.path.join(folder, "records") if json is None else os.fspath(json)
        arguments += ["--json", path, *_option("force", force), *_option("quiet", not verbose)]
        _run(laboratory, arguments)
        with open(path, encoding="utf-8") as lines:
            return [json_module.loads(line) for line in lines]


def main(arguments: Sequence[str]) -> int:
    """The program, with the peers among its implementations; its exit status."""
    laboratory = _laboratory_with_peers()
    status = laboratory.run_and_report("python -m strobe", list(arguments))
    if arguments[:1] == ["list"]:
        from strobe import peers

        for library, reason in peers.absent().items():
            print(f"{library} is not here: {reason}")
    return status


def _laboratory_with_peers() -> Any:
    from strobe import peers
    from strobe.peers._laboratory import laboratory

    module = laboratory()
    peers.join_all()
    return module


def _run(laboratory: Any, arguments: list[str]) -> None:
    """What it throws names options of the program."""
    try:
        laboratory.run("python -m strobe", ["compare", *arguments])
    except (ValueError, RuntimeError) as error:
        text = re.sub(r"--([a-z][\w-]*)", _argument_name, str(error))
        raise type(error)(text.replace("; see strobe compare help", "")) from None


def _argument_name(option: re.Match[str]) -> str:
    return _NAMES.get(option[1], option[1].replace("-", "_"))


def _option(name: str, value: Any) -> list[str]:
    """An option of the program; nothing for None and False."""
    if value is None or value is False:
        return []
    if value is True:
        return [f"--{name}"]
    if not isinstance(value, (str, int, float)):
        argument = _NAMES.get(name, name)
        raise TypeError(
            f"{argument} is of type {type(value).__name__}, a str or a number is needed"
        )
    return [f"--{name}", str(value)]


def _joined(name: str, values: str | Sequence[str] | None) -> str | None:
    if values is None or isinstance(values, str):
        return values
    if not isinstance(values, Iterable) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{name} is of type {type(values).__name__}, names are needed")
    if not values:
        raise ValueError(f"{name} is empty, at least one name is needed")
    return ",".join(values)


def _problem_arguments(problems: Problems | None) -> Iterator[str]:
    from strobe.peers import Problem

    if problems is None:
        return
    if isinstance(problems, (str, Problem)):
        problems = [problems]
    if not isinstance(problems, Iterable):
        raise TypeError(
            f"problems is of type {type(problems).__name__}, a str or several are needed"
        )
    for problem in problems:
        if not isinstance(problem, (str, Problem)):
            raise TypeError(f"problems has a {type(problem).__name__}, a str is needed")
        yield from ("--problem", str(problem))


def _setting_arguments(settings: dict[str, Any], known: Sequence[str]) -> Iterator[str]:
    for name, value in settings.items():
        option = name.replace("_", "-")
        if option not in known:
            raise TypeError(f"there is no argument {name}")
        yield from _option(option, value)


def _settings_kept() -> contextlib.AbstractContextManager[None]:
    if "strobe.peers.torch" not in sys.modules:
        return contextlib.nullcontext()
    from strobe.peers.torch import settings_kept

    return settings_kept()
