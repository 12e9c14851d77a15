"""The mocks under which the other tests here run the program."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.program.conftest import Recorder


async def nothing() -> None:
    """End at once."""


def test_the_program_runs_after_an_asyncio_run_of_the_same_process(
    run_program: Callable[..., Recorder], local_stack: dict[str, Any]
) -> None:
    asyncio.run(nothing())
    assert run_program(local_stack).of_type(":Deployment")
