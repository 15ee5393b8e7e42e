"""The same numbers from the processes of a Dask cluster, one of which is killed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array
import dask.bag
import numpy as np
import pytest
from distributed import Client, LocalCluster

import onnxlab
from onnxlab.errors import RunError
from tests.analysis.datasets.support import KillsOnce, counted, images, same

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two processes of this machine."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as connected,
    ):
        yield connected


def test_the_cluster_counts_what_this_process_counts(client: Client, tmp_path: Path) -> None:
    samples: list[Any] = images(50)
    samples[13] = np.zeros((3, 3), np.float32)
    expected = counted(samples, chunk=4)
    assert expected.samples == 49
    assert same(counted(samples, chunk=4, client=client), expected)
    assert same(counted(iter(samples), chunk=4, client=client, checkpoint=tmp_path / "state.npz"), expected)
    folder = tmp_path / "files"
    folder.mkdir()
    for number, image in enumerate(images(10)):
        np.savez(folder / f"{number}.npz", image=image)
    assert same(counted(folder, client=client), counted(folder))


@pytest.mark.parametrize("local", [True, False], ids=["local", "cluster"])
def test_bags_and_arrays(client: Client, local: bool) -> None:
    samples = images(20)
    chosen = None if local else client
    bag = dask.bag.from_sequence(samples, npartitions=4)
    assert same(counted(bag, client=chosen), counted(samples, chunk=5))
    array = dask.array.from_array(np.concatenate(samples), chunks=(3, 1, 4, 4))
    assert same(counted(array, client=chosen, chunk=5), counted(samples, chunk=5))


def test_a_killed_worker_changes_nothing(client: Client, tmp_path: Path) -> None:
    samples = [({"image": image}, "kill" if number == 20 else "") for number, image in enumerate(images(40))]
    other = onnxlab.load()
    other.nodes["/stem/relu/Relu"].op_type = "LeakyRelu"
    marker = tmp_path / "killed"
    without_it = onnxlab.evaluate(onnxlab.load(), other, samples[:20] + samples[21:], progress=False)
    result = onnxlab.evaluate(
        onnxlab.load(), other, samples, KillsOnce(marker), chunk=4, client=client, progress=False
    )  # fmt: skip
    assert marker.exists()
    expected = onnxlab.evaluate(onnxlab.load(), other, samples, KillsOnce(marker), chunk=4, progress=False)
    assert result.as_dict() == expected.as_dict()
    assert (result.samples, without_it.samples) == (40, 39)


def test_what_fails_on_workers_is_told(client: Client) -> None:
    with pytest.raises(RunError, match="none of 3 samples could be used"):
        counted([np.zeros((3, 3), np.float32)] * 3, client=client)
    with pytest.raises(TypeError, match=r"give a distributed\.Client"):
        counted(images(2), client="tcp://10.0.0.1:8786")
