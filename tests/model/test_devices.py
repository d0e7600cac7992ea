"""Devices by name, and what a person is told when one is missing or full."""

import re

import numpy as np
import pytest
import torch

from transformer_viz.errors import DeviceError, OptionError
from transformer_viz.model import devices


def test_auto_prefers_cuda_then_mps_then_the_cpu_and_what_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert devices.resolve("auto") == devices.resolve("cpu") == torch.device("cpu")
    assert devices.available() == ["cpu"]
    assert devices.title(torch.device("cpu")) == "cpu"
    for name in ("cuda", "mps"):
        with pytest.raises(DeviceError, match=rf"'{name}'.*available are cpu"):
            devices.resolve(name)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert devices.resolve("auto").type == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert devices.resolve("auto").type == "cuda"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    assert devices.title(torch.device("cuda")) == "cuda · NVIDIA H200"


@pytest.mark.parametrize("name", ["gpu", "", "cuda:7", "CPU"])
def test_an_unknown_name_lists_the_known(name):
    with pytest.raises(OptionError, match="auto, cpu, cuda, mps") as caught:
        devices.resolve(name)
    assert repr(name) in str(caught.value)


def test_out_of_memory_says_what_to_do_next(monkeypatch):
    emptied = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(1))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tiny GPU")
    with pytest.raises(DeviceError, match=r"Tiny GPU.*memory.*another device"), devices.memory_errors(torch.device("cuda")):
        raise torch.OutOfMemoryError("CUDA out of memory")
    assert emptied
    with pytest.raises(ZeroDivisionError), devices.memory_errors(torch.device("cpu")):
        _ = 1 / 0


def test_a_model_runs_without_autograd_on_one_thread_and_says_what_it_lacks(tiny):
    with devices.running(tiny):
        assert torch.is_inference_mode_enabled() and torch.get_num_threads() == 1
    weights = torch.ones(2)
    with torch.inference_mode(), devices.running(tiny, has_gradients=True):
        assert not torch.is_grad_enabled()
        with torch.enable_grad():
            assert (weights.clone().requires_grad_() * 3).requires_grad
    with pytest.raises(DeviceError, match="out of memory"), devices.running(tiny):
        raise torch.OutOfMemoryError("out of memory")


def test_memory_of_this_machine_runs_out_too():
    """Errors as torch and numpy raise them, for more than any machine has: torch's is an ordinary RuntimeError."""
    for allocate in (lambda: torch.empty(2**50), lambda: np.empty(2**57)):
        with pytest.raises(DeviceError) as caught, devices.memory_errors(torch.device("cpu"), "Do this."):
            allocate()
        assert re.fullmatch(r"This machine ran out of memory: [\d.]+ \w+ were asked for\. Do this\.", str(caught.value))
    for words in ("CUDA error: out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"):
        assert devices.is_out_of_memory(RuntimeError(words))
    with pytest.raises(RuntimeError, match="shapes"), devices.memory_errors(torch.device("cpu")):
        raise RuntimeError("shapes cannot be multiplied")
