#!/usr/bin/env python3
"""When each kernel of emitted CUDA code begins and ends within a run: what a chain of kernels costs beyond their times.

usage: gpu_timeline.py [--runs 20] FOLDER ...
needs: a GPU; torch (its profiler reads the device's own clock), numpy; folders that `gopt optimize --emit` made and cmake built

A line a kernel, medians over the runs in microseconds: from the run's first kernel to its begin, how long it runs, and the time
from the end of the kernel before it (negative: they overlap). Kernels that were launched to wait for the one before them run while they wait.
"""
import argparse, pathlib, statistics, sys
import numpy as np
import torch

from check_models import Emitted
from cuda_check import OnDevice
from turns import feed_of


def kernels_of(device, runs):
    """(begin, duration, name) of all kernels, in order, of so many runs."""
    device.run(5)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        device.run(runs)
    events = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith("Memcpy")]
    return sorted((e.time_range.start, e.time_range.elapsed_us(), e.name) for e in events)


def timeline(folder, runs):
    emitted = Emitted(folder, 0)
    events = kernels_of(OnDevice(emitted, feed_of(emitted, np.random.default_rng(0))), runs)
    count = len(events) // runs
    if not count or len(events) != count * runs:
        raise RuntimeError(f"{folder}: {len(events)} kernels in {runs} runs")
    each = [events[k * count:(k + 1) * count] for k in range(1, runs)]
    median = lambda of: statistics.median(of(run) for run in each)
    total = median(lambda run: run[-1][0] + run[-1][1] - run[0][0])
    print(f"{folder}: {count} kernels, {total:.1f} us from the first to the last, {median(lambda run: sum(e[1] for e in run)):.1f} us in kernels")
    for k in range(count):
        gap = median(lambda run: run[k][0] - (run[k - 1][0] + run[k - 1][1])) if k else 0
        print(f"{median(lambda run: run[k][0] - run[0][0]):9.1f} {median(lambda run: run[k][1]):7.2f} {gap:6.2f}  {each[0][k][2][:110]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    for folder in args.folders:
        timeline(folder, args.runs)


if __name__ == "__main__":
    sys.exit(main())
