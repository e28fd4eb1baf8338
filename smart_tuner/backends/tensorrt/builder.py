"""Starting the compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.errors import EnvironmentNotFit

if TYPE_CHECKING:
    from smart_tuner.backends.tensorrt import api
    from smart_tuner.backends.tensorrt.logger import BuildLog
    from smart_tuner.backends.tensorrt.sdk import Sdk


def make_builder(sdk: Sdk, log: BuildLog) -> tuple[api.Builder, api.BuilderConfig]:
    """Start the compiler; returns a builder with a fresh configuration.

    Raises:
        EnvironmentNotFit: It does not start on this machine; says what it said.
    """
    try:
        builder = sdk.module.Builder(log.native)
        return builder, builder.create_builder_config()
    except (RuntimeError, TypeError) as error:
        # The bindings raise TypeError for a builder that could not be made.
        msg = f"{sdk} cannot start its builder here: {log.reason()}."
        raise EnvironmentNotFit(msg) from error
