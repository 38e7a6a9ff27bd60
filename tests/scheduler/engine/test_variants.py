"""Which files of a container image go to which computer."""

from __future__ import annotations

import pytest

from scheduler.engine.choice.variants import files_for

LINUX, MAC, MAC_INTEL = "x86_64-pc-linux-gnu", "arm64-apple-darwin", "x86_64-apple-darwin"
DATA = {"name": "data"}
ANY = {"name": "any", "cpu": "any"}
PLAIN = {"name": "plain", "plan_class": "", "cpu": "intel"}
ARM = {"name": "arm", "cpu": "arm"}
GPU = {"name": "gpu", "plan_class": "docker_nvidia", "cpu": "intel"}
ANY_GPU = {"name": "any gpu", "plan_class": "docker_nvidia"}


@pytest.mark.parametrize(
    ("inputs", "plan_class", "platform", "main", "names"),
    [
        ([], "docker", LINUX, LINUX, []),
        ([DATA], "docker", LINUX, MAC, ["data"]),
        ([DATA, PLAIN, ARM], "docker", LINUX, LINUX, ["data", "plain"]),
        ([DATA, PLAIN, ARM], "docker", MAC, MAC, ["data", "arm"]),
        ([DATA, PLAIN], "docker", MAC, MAC, None),
        # A wrapper for Intel on a Mac with ARM would build an image for the other processor.
        ([DATA, PLAIN, ARM], "docker", MAC_INTEL, MAC, None),
        ([DATA, ANY, ARM], "docker", LINUX, LINUX, ["data", "any"]),
        ([DATA, ANY, ARM], "docker", MAC, MAC, ["data", "arm"]),
        ([ANY, ANY_GPU], "docker", "riscv64-pc-linux-gnu", "riscv64-pc-linux-gnu", ["any"]),
        ([ANY, ANY_GPU], "docker_nvidia", LINUX, LINUX, ["any gpu"]),
        ([PLAIN, GPU, ANY_GPU], "docker_nvidia", LINUX, LINUX, ["gpu"]),
        ([ARM, GPU, ANY_GPU], "docker_nvidia", MAC, MAC, ["any gpu"]),
        ([PLAIN, ANY_GPU], "docker", LINUX, LINUX, ["plain"]),
        ([GPU], "docker", LINUX, LINUX, None),
        ([ANY_GPU], "docker_nvidia", "riscv64-pc-linux-gnu", "riscv64-pc-linux-gnu", ["any gpu"]),
        ([PLAIN], "docker", "riscv64-pc-linux-gnu", "riscv64-pc-linux-gnu", None),
    ],
)
def test_the_closest_variant_is_taken(
    inputs: list[dict[str, str]], plan_class: str, platform: str, main: str, names: list[str] | None
) -> None:
    files = files_for(inputs, plan_class, platform, main)
    assert (None if files is None else [file["name"] for file in files]) == names
