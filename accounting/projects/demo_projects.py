"""The fictitious projects of the demo. Their texts are in the reader's language (portal.languages.supplied)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext_noop as _

from accounting.engine.choice.facts import CPU

LINUX, WINDOWS, MAC = "x86_64-pc-linux-gnu", "windows_x86_64", "arm64-apple-darwin"


@dataclass(frozen=True, slots=True)
class DemoProject:
    """A project that does not exist. ``keywords``: numbers and weights; ``gpus``: types that it has programs for."""

    name: str
    host: str
    summary: str
    description: str
    keywords: dict[int, float]
    platforms: tuple[str, ...] = (LINUX, WINDOWS, MAC)
    gpus: tuple[str, ...] = ()
    has_cpu: bool = True

    @property
    def url(self) -> str:
        return f"https://{self.host}/science/"

    @property
    def versions(self) -> set[tuple[str, str]]:
        types = (CPU,) * self.has_cpu + self.gpus
        return {(platform, type_) for platform in self.platforms for type_ in types}


PROJECTS: Final = (
    DemoProject(
        "Tidewater",
        "tidewater.example.org",
        _("Models how estuaries change as the sea rises."),
        _(
            "Where rivers meet the sea, a hand's breadth of water decides over marsh, meadow or town. Each task "
            "runs one estuary through a hundred years of tides, storms and dredging."
        ),
        {35: 0.6, 34: 0.4, 61: 1.0},
    ),
    DemoProject(
        "Quiet Sky Survey",
        "quietsky.example.org",
        _("Searches radio recordings for pulsars that nobody has seen yet."),
        _(
            "A pulsar is a faint tick in years of noise. Each task takes two minutes of one telescope's recording"
            " and tries thousands of periods and distances on it."
        ),
        {3: 1.0, 18: 1.0},
        gpus=("NVIDIA", "ATI"),
    ),
    DemoProject(
        "Fold Garden",
        "foldgarden.example.org",
        _("Predicts how small proteins fold, for plant medicine."),
        _(
            "Plants make small proteins that keep fungi away. Each task folds one of them a few hundred times and"
            " keeps the shapes that hold."
        ),
        {11: 0.7, 10: 0.3, 21: 1.0},
        gpus=("NVIDIA", "intel_gpu"),
    ),
    DemoProject(
        "Prime Orchard",
        "primeorchard.example.org",
        _("Looks for large primes of rare forms."),
        _(
            "Each task tests one number with some million digits. Most are not prime; the few that are get the "
            "name of the volunteer whose computer found them."
        ),
        {32: 1.0, 59: 1.0},
    ),
    DemoProject(
        "Lantern",
        "lantern.example.org",
        _("Follows light through new materials for solar cells."),
        _("Each task lets a few million photons loose in one crystal and counts what becomes of them."),
        {8: 0.8, 62: 0.2, 24: 1.0},
        gpus=("NVIDIA", "ATI", "intel_gpu"),
        has_cpu=False,
    ),
    DemoProject(
        "Slow Virus",
        "slowvirus.example.org",
        _("Asks how viruses of trees and bees jump from host to host."),
        _("Each task grows a family tree of a few thousand samples, and says how sure one can be of it."),
        {64: 0.7, 12: 0.3, 48: 1.0},
        platforms=(LINUX, WINDOWS),
    ),
)
TEXTS: Final = [text for demo_project in PROJECTS for text in (demo_project.summary, demo_project.description)]
