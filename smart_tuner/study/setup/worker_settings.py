"""Settings of who works on a study, and where its trials are kept meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, field_validator, model_validator

from smart_tuner.devices.shares import Place, gpu_places, processor_places
from smart_tuner.storages.address import check_url

if TYPE_CHECKING:
    from typing_extensions import Self


class WorkerSettings(BaseModel):
    """The part of a study's settings that concerns its workers."""

    storage: str | None = Field(
        None,
        description="PostgreSQL database that trials are kept in, so that workers on other "
        "machines can join; its password belongs in ~/.pgpass. [default: the study folder]",
    )
    workers: int = Field(
        1,
        ge=1,
        description="Workers on this machine, each with an equal share of its processors, which "
        "is what routes are measured with.",
    )
    devices: str | None = Field(
        None, description="GPUs, as 0,1: one worker for each, this process being the first."
    )

    @field_validator("storage")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        return value and check_url(value)

    @model_validator(mode="after")
    def _check_workers(self) -> Self:
        if self.devices and self.workers > 1:
            msg = "--devices says how many workers there are: leave out --workers"
            raise ValueError(msg)
        return self

    @property
    def places(self) -> tuple[Place, ...]:
        """Where each worker runs; the first is for this process.

        Raises:
            UserInputError: There is not so much to share out.
        """
        return gpu_places(self.devices) if self.devices else processor_places(self.workers)
