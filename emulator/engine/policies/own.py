"""Policies from outside this project: of installed packages, by the name of their entry point, or from a file.

A package offers one in the entry-point group `cobblestone.emulator.policies`. The named object is called with the
scenario and the run's parameters, and returns a policy (emulator.engine.policy.Policy): a class with these two
arguments will do. An attribute `policy_api_version` may state the version of the interface that it was written for.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final

from emulator.engine.policies.guarded import GuardedPolicy, described
from emulator.engine.policies.names import PolicyName
from emulator.engine.policy import POLICY_API_VERSION, Policy, PolicyError
from emulator.engine.scenario import Scenario

GROUP: Final = "cobblestone.emulator.policies"
NAME_CHARS_MAX: Final = 60
_NAME: Final = re.compile(rf"[a-z][a-z0-9-]{{0,{NAME_CHARS_MAX - 1}}}")
_MODULE: Final = "cobblestone_policy_file"

Factory = Callable[[Scenario, Mapping[str, Any]], Policy]


def installed() -> dict[str, EntryPoint]:
    """The policies of installed packages by name, in order; none of their code is loaded.

    Left out: names that are not lower-case letters, digits and hyphens, and those of this project's own policies.
    """
    points = {point.name: point for point in entry_points(group=GROUP) if _NAME.fullmatch(point.name)}
    return {name: points[name] for name in sorted(points) if name not in set(PolicyName)}


def is_file(name: str) -> bool:
    """Whether it names a file and a class in it, `FILE.py:Class`, rather than a policy."""
    return bool(re.search(r"\.py:\w+$", name))


def make_own_policy(name: str, scenario: Scenario, parameters: Mapping[str, Any]) -> Policy:
    """Makes a policy for one run: of an installed package, or of a `FILE.py:Class`. Raises PolicyError.

    Its code runs here with all rights of this process, so only the command line runs it.
    """
    factory = _of_file(name) if is_file(name) else _of_package(name)
    label = name.rpartition(":")[2] if is_file(name) else name
    version = getattr(factory, "policy_api_version", POLICY_API_VERSION)
    if version != POLICY_API_VERSION:
        raise PolicyError(
            f"The policy {label} was written for version {version!r} of the interface; this is {POLICY_API_VERSION}."
        )
    try:
        policy = factory(scenario, parameters)
    except (Exception, SystemExit) as error:
        raise PolicyError(f"The policy {label} could not be made: {described(error)}.") from error
    return GuardedPolicy(policy, label)


def _of_package(name: str) -> Factory:
    try:
        point = installed()[name]
    except KeyError:
        names = ", ".join([*PolicyName, *installed()])
        raise PolicyError(f"There is no policy {name!r}. These are installed: {names}.") from None
    try:
        factory: Factory = point.load()
    except (Exception, SystemExit) as error:
        raise PolicyError(f"The policy {name} could not be loaded: {described(error)}.") from error
    return factory


@cache
def _of_file(name: str) -> Factory:
    path, _, attribute = name.rpartition(":")
    spec = importlib.util.spec_from_file_location(_MODULE, Path(path))
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise PolicyError(f"There is no file {path}.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        factory: Factory = getattr(module, attribute)
    except (Exception, SystemExit) as error:
        raise PolicyError(f"The policy {attribute} could not be loaded from {path}: {described(error)}.") from error
    return factory
